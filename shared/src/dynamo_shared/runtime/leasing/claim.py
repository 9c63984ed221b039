"""One owner without etcd: one replica holds a service's Lease in the platform's namespace, the others stand by.

The holder works on everything for as long as its own clock guarantees that no other replica can have taken the Lease.
So a replica that was stopped for a while (SIGSTOP, a paused machine) no longer holds the Lease when it continues,
before any message arrives.
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

#: Interval at which standby replicas check whether the Lease is free, in seconds, with jitter.
CHECK_EVERY = 2.0
#: Pauses after the API server did not answer or another replica was faster, in seconds: the first and the longest.
FIRST_RETRY = 0.2
LAST_RETRY = 2.0
#: How long an orderly shutdown waits for the release of the Lease, in seconds.
RELEASE_WITHIN = 2.0

log = structlog.get_logger("dynamo.leases")


class KubeClaim(Ownership):
    """Ownership and leadership of one service by one Lease. `run` must be running; all belongs to its event loop."""

    def __init__(
        self, kube: KubeClient, key: ObjectKey, replica: str, ttl: float, *, clock: Callable[[], float] = lease_clock
    ) -> None:
        """`clock`: measures how long this replica holds the Lease, in seconds."""
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
        """Why the Lease cannot be read or written; "" if it can"""

    @property
    def key(self) -> ObjectKey:
        """Namespace and name of the Lease."""
        return self._key

    @property
    def holder(self) -> str:
        """The holder of the Lease as last read; "" if there is none."""
        return self._replica if self.may_write() else self._candidate.holder

    def may_write(self) -> bool:
        """Whether this replica holds the Lease, and no other can have taken it."""
        return self._term is not None and self._term.alive(self._clock())

    def owns(self, _: ObjectKey) -> bool:
        """Whether this replica may work on a key now: on all keys or on none."""
        return self.may_write()

    def keeps(self) -> frozenset[int]:
        """All partitions: a standby replica takes over at once."""
        return ALL

    async def wait_elected(self) -> None:
        """Return when this replica holds the Lease."""
        while not self.may_write():
            await self._elected.wait()
            if not self.may_write():
                self._step_down("it expired")

    async def wait_lost(self) -> None:
        """Return as soon as this replica no longer holds the Lease."""
        while self.may_write():
            await self._lost.wait()

    def on_change(self, listener: Listener) -> None:
        """Register a listener: the Lease was taken or lost, its holder or why its requests fail changed."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Hold the Lease or stand by for it, until cancelled."""
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
                    # No Lease of this replica existed, so its namespace is missing.
                    self._note(str(error))
                self._written = None
                pause = backoff.next()
            except (KubeError, TimeoutError) as error:
                self._written = None
                self._note(str(error) or "no response in time")
                pause = backoff.next()
            except Exception:
                # `run` is restarted after a pause, during which the end of the Lease would go unnoticed.
                self._step_down("the task that renews it failed")
                raise
            if self._candidate.holder != holder:
                self._notify()
            await self._wait(pause)

    async def close(self) -> None:
        """Release the Lease, so that the next holder need not wait; call it after the services and `run` have ended."""
        self._step_down("this replica stops")
        try:
            async with asyncio.timeout(RELEASE_WITHIN):
                # Read again: a write that was interrupted or had no answer may have been stored.
                observed = await get_if_present(self._kube, LEASES, self._key)
                if observed is not None and LeaseRecord.of(observed).holder == self._replica:
                    await self._kube.replace(LEASES, self._lease(observed, holder=""))
        except (KubeError, TimeoutError) as error:
            log.info("cannot release the Lease; it will expire", lease=str(self._key), error=str(error))

    async def _round(self) -> float:
        """Read if necessary, decide, write; returns the seconds until the next round."""
        observed = self._written
        if observed is None or not self.may_write():
            observed = await get_if_present(self._kube, LEASES, self._key)
            record = LeaseRecord.of(observed) if observed is not None else None
            # Monotonic: a corrected time of day may end this replica's hold early, but not another replica's.
            if not self._candidate.may_take(record, time.monotonic()):
                self._step_down("another replica holds it")
                return spread(CHECK_EVERY)
        # The time before sending: other replicas count from when they read the Lease, which is later.
        sent = self._clock()
        lease = self._lease(observed, holder=self._replica)
        if observed is None:
            self._written = await self._kube.create(LEASES, lease)
        else:
            self._written = await self._kube.replace(LEASES, lease)
        self._take(sent)
        return self._ttl / 3

    def _longest_round(self) -> float:
        """Limit of a round, in seconds: at the latest the Lease's end, so that dependent parts are notified in time."""
        term, longest = self._term, self._ttl / 3
        left = term.deadline - self._clock() if term is not None else 0.0
        return min(longest, left) if left > 0 else longest

    def _take(self, sent: float) -> None:
        before = self._term
        held = before is not None and before.alive(self._clock())
        if before is not None and not held:
            # It expired, and no other replica took it meanwhile; work under way was aborted all the same.
            self._step_down("it was renewed too late")
        self._term = Term.granted(0, self._ttl, sent) if before is None or not held else before.renewed(self._ttl, sent)
        self._candidate.may_take(LeaseRecord.of(self._written or {}), time.monotonic())
        if not held and self.may_write():
            log.info("Lease acquired", lease=str(self._key), replica=self._replica)
            self._lost.clear()
            self._elected.set()
            self._report_gain(ALL)
            self._notify()

    def _lease(self, observed: KubeObject | None, *, holder: str) -> KubeObject:
        """The Lease to write; the version read (None: none exists) is the precondition."""
        spec = dict(observed.get("spec") or {}) if observed is not None else {}
        transitions = spec.get("leaseTransitions")
        transitions = transitions if type(transitions) is int and 0 <= transitions < 2**31 - 1 else 0
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        taken = spec.get("holderIdentity") != holder
        metadata = dict(observed["metadata"]) if observed is not None else {}
        metadata.pop("managedFields", None)
        # The Lease outlives its release; uninstalling finds it by this label.
        labelled = {**(metadata.get("labels") or {}), labels.APP_PART_OF: PLATFORM}
        return {
            **LEASES.type_meta,
            "metadata": {**metadata, "name": self._key.name, "namespace": self._key.namespace, "labels": labelled},
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
        log.warning("Lease lost", lease=str(self._key), replica=self._replica, reason=reason)
        self._elected.clear()
        self._lost.set()
        self._report_loss()
        self._notify()

    async def _wait(self, pause: float) -> None:
        """Wait, and step down if the Lease expires meanwhile: parts that work under the claim must be notified."""
        due = self._clock() + pause
        while True:
            term, now = self._term, self._clock()
            if term is not None and not term.alive(now):
                # Also if no time is left to wait: the next round may take long.
                self._step_down("it could not be renewed in time")
                return
            if now >= due:
                return
            await asyncio.sleep(min(due, term.deadline if term is not None else due) - now)

    def _note(self, trouble: str) -> None:
        if trouble == self.trouble:
            return
        if not self.trouble:
            log.warning("cannot read or write the Lease", lease=str(self._key), error=trouble)
        self.trouble = trouble
        self._notify()

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()
