"""One owner without etcd: a service's Lease in the platform's namespace is held by one replica, the others stand by.

The holder works on everything, for as long as its own clock says that no other can have taken the Lease. So a replica that
was stopped for a while (SIGSTOP, a paused machine) holds nothing when it goes on, before any message reaches it.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from dynamo_shared.aio import Backoff, spread
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import PLATFORM, labels
from dynamo_shared.api.resources import LEASES, ObjectKey
from dynamo_shared.kube import AlreadyExists, Conflict, KubeClient, KubeError, NotFound, get_if_present
from dynamo_shared.leases import Listener, Ownership
from dynamo_shared.leases.candidate import LeaseCandidate, LeaseRecord
from dynamo_shared.leases.rendezvous import ALL
from dynamo_shared.leases.term import Term, lease_clock

#: How often replicas that stand by check whether the Lease is free, in seconds, with jitter.
CHECK_EVERY = 2.0
#: Pause after the API server did not answer or another replica was faster, in seconds: the first, and the longest.
FIRST_RETRY = 0.2
LAST_RETRY = 2.0
#: How long an orderly end waits for the Lease to be given back, in seconds.
RELEASE_WITHIN = 2.0

log = structlog.get_logger("dynamo.leases")


class KubeClaim(Ownership):
    """Ownership and leadership of one service through one Lease. `run` must run; all methods belong to its event loop."""

    def __init__(
        self,
        kube: KubeClient,
        key: ObjectKey,
        replica: str,
        ttl: float,
        *,
        clock: Callable[[], float] = lease_clock,
    ) -> None:
        """`clock` says how long this replica holds the Lease, in seconds."""
        super().__init__()
        self._kube = kube
        self._key = key
        self._replica = replica
        self._ttl = ttl
        self._clock = clock
        self._candidate = LeaseCandidate(replica, ttl)
        self._term: Term | None = None
        self._written: KubeObject | None = None
        self._listeners: list[Listener] = []
        self._elected, self._lost = asyncio.Event(), asyncio.Event()
        self._lost.set()
        self.trouble = ""
        """Why the Lease cannot be read or written; empty while it can."""

    @property
    def key(self) -> ObjectKey:
        """Where the Lease is."""
        return self._key

    @property
    def holder(self) -> str:
        """The replica that holds the Lease as last read, empty where none does."""
        return self._replica if self.may_write() else self._candidate.holder

    def may_write(self) -> bool:
        """Whether this replica holds the Lease, and no other can have taken it."""
        return self._term is not None and self._term.alive(self._clock())

    def owns(self, _: ObjectKey) -> bool:
        """Whether this replica may work on a key now: on all, or on none."""
        return self.may_write()

    def keeps(self) -> frozenset[int]:
        """All partitions: a replica that stands by takes over at once."""
        return ALL

    async def wait_elected(self) -> None:
        """Return as soon as this replica holds the Lease."""
        while not self.may_write():
            await self._elected.wait()
            if not self.may_write():
                self._step_down("its time is over")

    async def wait_lost(self) -> None:
        """Return as soon as this replica holds it no longer."""
        while self.may_write():
            await self._lost.wait()

    def on_change(self, listener: Listener) -> None:
        """Call back when the Lease was taken or lost, changed hands, or requests for it begin or cease to fail."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Hold the Lease, or stand by for it, until cancelled."""
        backoff = Backoff(FIRST_RETRY, LAST_RETRY)
        while True:
            holder, pause = self._candidate.holder, 0.0
            try:
                async with asyncio.timeout(self._longest_round()):
                    pause = await self._round()
                backoff.reset()
                self._note("")
            except (Conflict, AlreadyExists, NotFound) as error:
                # Another replica was faster, or the Lease was changed or deleted: read it again.
                if isinstance(error, NotFound) and self._written is None:
                    # No Lease of this replica can have been deleted: its namespace is not there.
                    self._note(str(error))
                self._written = None
                pause = backoff.next()
            except (KubeError, TimeoutError) as error:
                self._written = None
                self._note(str(error) or "no answer in time")
                pause = backoff.next()
            except Exception:
                # `run` is begun again after a pause, in which no one would notice that the time is over.
                self._step_down("it failed")
                raise
            if self._candidate.holder != holder:
                self._notify()
            await self._wait(pause)

    async def close(self) -> None:
        """Give the Lease back, so that the next need not wait; call after the services have ended and `run` was cancelled."""
        self._step_down("this replica ends")
        try:
            async with asyncio.timeout(RELEASE_WITHIN):
                # Read once more: a write that was cut off, or had no answer, may have been done.
                observed = await get_if_present(self._kube, LEASES, self._key)
                if observed is not None and LeaseRecord.of(observed).holder == self._replica:
                    await self._kube.replace(LEASES, self._lease(observed, holder=""))
        except (KubeError, TimeoutError) as error:
            log.info("the Lease was not given back and will expire", lease=str(self._key), error=str(error))

    async def _round(self) -> float:
        """Read where that is necessary, decide, write; returns the seconds until the next round."""
        observed = self._written
        if observed is None or not self.may_write():
            observed = await get_if_present(self._kube, LEASES, self._key)
            record = LeaseRecord.of(observed) if observed is not None else None
            # A time of day that is set right may end what this replica holds too early, and not what another one does.
            if not self._candidate.may_take(record, time.monotonic()):
                self._step_down("another replica holds it")
                return spread(CHECK_EVERY)
        # Before it is sent: the others count from when they see it, which is later.
        sent = self._clock()
        lease = self._lease(observed, holder=self._replica)
        if observed is None:
            self._written = await self._kube.create(LEASES, lease)
        else:
            self._written = await self._kube.replace(LEASES, lease)
        self._take(sent)
        return self._ttl / 3

    def _longest_round(self) -> float:
        """Seconds that a round may take: where the Lease is held, it ends with it, so that parts under it learn in time."""
        term, longest = self._term, self._ttl / 3
        left = term.deadline - self._clock() if term is not None else 0.0
        return min(longest, left) if left > 0 else longest

    def _take(self, sent: float) -> None:
        before = self._term
        held = before is not None and before.alive(self._clock())
        if before is not None and not held:
            # It ran out, and no other replica took it meanwhile; what was under way was cut off all the same.
            self._step_down("it was renewed too late")
        self._term = Term.granted(0, self._ttl, sent) if before is None or not held else before.renewed(self._ttl, sent)
        self._candidate.may_take(LeaseRecord.of(self._written or {}), time.monotonic())
        if not held and self.may_write():
            log.info("Lease taken", lease=str(self._key), replica=self._replica)
            self._lost.clear()
            self._elected.set()
            self._report_gain(ALL)
            self._notify()

    def _lease(self, observed: KubeObject | None, *, holder: str) -> KubeObject:
        """The Lease as it is to be written; what was read (None: nothing) is the precondition."""
        spec = dict(observed.get("spec") or {}) if observed is not None else {}
        transitions = spec.get("leaseTransitions")
        transitions = transitions if type(transitions) is int and 0 <= transitions < 2**31 - 1 else 0
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        taken = spec.get("holderIdentity") != holder
        metadata = dict(observed["metadata"]) if observed is not None else {}
        metadata.pop("managedFields", None)
        # It outlives the release, and those who remove all of it find it by this.
        marked = {**(metadata.get("labels") or {}), labels.APP_PART_OF: PLATFORM}
        return {
            **LEASES.type_meta,
            "metadata": {**metadata, "name": self._key.name, "namespace": self._key.namespace, "labels": marked},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(1, round(self._ttl)) if holder else 1,
                "acquireTime": now if taken or not spec.get("acquireTime") else spec["acquireTime"],
                "renewTime": now,
                "leaseTransitions": transitions + (1 if taken and holder and observed is not None else 0),
            },
        }

    def _step_down(self, reason: str) -> None:
        if self._term is None:
            return
        self._term = None
        log.warning("Lease held no more", lease=str(self._key), replica=self._replica, reason=reason)
        self._elected.clear()
        self._lost.set()
        self._report_loss()
        self._notify()

    async def _wait(self, pause: float) -> None:
        """Wait, and step down where the time ends meanwhile: parts that work under the claim must learn of it."""
        due = self._clock() + pause
        while True:
            term, now = self._term, self._clock()
            if term is not None and not term.alive(now):
                # Also where no time is left to wait: the next round may last.
                self._step_down("it could not be renewed in time")
                return
            if now >= due:
                return
            await asyncio.sleep(min(due, term.deadline if term is not None else due) - now)

    def _note(self, trouble: str) -> None:
        changed = bool(trouble) != bool(self.trouble)
        if trouble and changed:
            log.warning("Lease not read or written", lease=str(self._key), error=trouble)
        self.trouble = trouble
        if changed:
            self._notify()

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()
