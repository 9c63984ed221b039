"""Which partitions to claim, to stop working on and to release: a pure decision from successive readings of etcd.

A partition that this replica holds goes through these phases:

    HELD       work is allowed while the lease that claims it is alive
    DRAINING   another member should have it: no new work, running work ends; may become HELD again
    RELEASING  the claim is being deleted: never held again, because a deletion whose answer was lost may still happen
"""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dynamo_shared.leases.rendezvous import best_member


class Claim(NamedTuple):
    """A claim in etcd: its lease, and the revision of its creation."""

    lease: int
    created: int


class Phase(enum.Enum):
    """See the module."""

    HELD = "held"
    DRAINING = "draining"
    RELEASING = "releasing"


@dataclass(slots=True)
class _Entry:
    claim: Claim
    phase: Phase
    round: int = 0


class Drain(NamedTuple):
    """A partition to be drained. `round` distinguishes it from an earlier drain that was cancelled."""

    partition: int
    round: int


@dataclass(frozen=True, slots=True)
class ClaimDecision:
    """The actions that follow from a reading of etcd."""

    gained: frozenset[int]
    lost: frozenset[int]
    """partitions on which no new work may begin"""
    cut_off: frozenset[int]
    """partitions whose claim has ended before the work on them: it must end now"""
    claim: tuple[int, ...]
    drain: tuple[Drain, ...]
    release: tuple[tuple[int, Claim], ...]


class Claims:
    """The partitions of one replica of one service."""

    def __init__(self, replica: str, count: int) -> None:
        self._replica = replica
        self._count = count
        self._entries: dict[int, _Entry] = {}
        self._rounds = 0

    def holds(self, partition: int, lease: int) -> bool:
        """Whether new work on a partition may begin under the lease that is alive now (0: none)."""
        entry = self._entries.get(partition)
        return entry is not None and lease != 0 and entry.phase is Phase.HELD and entry.claim.lease == lease

    def held(self, lease: int) -> frozenset[int]:
        """All partitions on which new work may begin."""
        return frozenset(partition for partition in self._entries if self.holds(partition, lease))

    def kept(self, lease: int) -> frozenset[int]:
        """All partitions on which work may begin or be running."""
        return frozenset(
            partition
            for partition, entry in self._entries.items()
            if lease and entry.claim.lease == lease and entry.phase is not Phase.RELEASING
        )

    def observe(
        self,
        lease: int,
        members: Collection[str],
        claims: Mapping[int, Claim],
        candidates: Collection[str] | None = None,
    ) -> ClaimDecision:
        """Process the content of etcd; `lease` is the one that is alive now (0: none).

        `candidates`: the members to which partitions are assigned, if not all members.
        """
        candidates = members if candidates is None else candidates
        before = {partition for partition, entry in self._entries.items() if entry.phase is Phase.HELD}
        working = self._working()
        mine = {partition: claim for partition, claim in claims.items() if lease and claim.lease == lease}
        self._entries = {n: entry for n, entry in self._entries.items() if mine.get(n) == entry.claim}
        for partition, claim in mine.items():
            # Also finds claims whose transaction was never answered.
            if partition not in self._entries:
                self._entries[partition] = _Entry(claim, Phase.HELD)
        claim_now: list[int] = []
        drain: list[Drain] = []
        # A replica that is not registered yet, or no longer, neither claims nor releases.
        if lease and self._replica in members:
            for partition in range(self._count):
                assigned = best_member(partition, candidates) == self._replica
                entry = self._entries.get(partition)
                if entry is None:
                    if assigned and partition not in claims:
                        claim_now.append(partition)
                elif entry.phase is Phase.HELD and not assigned:
                    self._rounds += 1
                    entry.phase, entry.round = Phase.DRAINING, self._rounds
                    drain.append(Drain(partition, entry.round))
                elif entry.phase is Phase.DRAINING and assigned:
                    entry.phase = Phase.HELD
        after = {partition for partition, entry in self._entries.items() if entry.phase is Phase.HELD}
        release = tuple((n, entry.claim) for n, entry in self._entries.items() if entry.phase is Phase.RELEASING)
        return ClaimDecision(
            frozenset(after - before),
            frozenset(before - after),
            working - self._entries.keys(),
            tuple(claim_now),
            tuple(drain),
            release,
        )

    def drop(self) -> frozenset[int]:
        """Handle the loss of the lease, and so of all claims. Returns the partitions on which work may be running."""
        working = self._working()
        self._entries.clear()
        return working

    def drained(self, drain: Drain) -> bool:
        """Record that no work runs on a partition any more. Returns whether its claim must be deleted now."""
        entry = self._entries.get(drain.partition)
        if entry is None or entry.phase is not Phase.DRAINING or entry.round != drain.round:
            return False
        entry.phase = Phase.RELEASING
        return True

    def _working(self) -> frozenset[int]:
        """Partitions on which work may be running."""
        return frozenset(n for n, entry in self._entries.items() if entry.phase is not Phase.RELEASING)
