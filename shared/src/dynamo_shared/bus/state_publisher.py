"""Publishing objects to STATE: fenced, pipelined, newest wins, and aware of what STATE has.

The publisher remembers for each subject the sequence and the version of its last message, and publishes against that
sequence. What can happen to a publish:

1. Acknowledged: remembered.
2. Wrong sequence: someone else has published (another watcher), or the message is gone (tombstone expired, stream lost).
   The last message of the subject is read again. Newer than ours: ours is dropped. Older or none: ours is tried again
   against the right sequence.
3. No answer: tried again when the bus can be reached. If it was stored after all, the message id makes the second one a
   duplicate, or (2) finds our own version there.
4. No stream: the streams are declared again, and STATE counts as lost.

For each subject at most one publish is on its way, and at most one newer version waits: of a burst of changes of one
object the first and the last are published. Over all subjects `window` publishes are on their way at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import structlog

from dynamo_shared.aio import Backoff, ended
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource, key_of
from dynamo_shared.bus import cloudevents, metrics, state, streams, subjects, tracing
from dynamo_shared.bus.errors import (
    BusClosedError,
    BusError,
    BusUnavailableError,
    StreamNotFoundError,
    WrongSequenceError,
)
from dynamo_shared.bus.protocol import Ack, Bus, Health
from dynamo_shared.bus.state import Change
from dynamo_shared.bus.state_ledger import Known, Ledger
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.bus.versions import Version, is_newer, version_of

WINDOW = 256
"""Publishes on their way at once. Enough to keep the server busy; more only makes each wait longer."""

BREATH = 32
"""Publishes after which other tasks get a turn; a few milliseconds."""

AUDIT_INTERVAL = 15.0
"""Seconds between looks whether STATE is still the stream that it was, and holds what it must."""

FIRST_RETRY = 0.05
LAST_RETRY = 5.0

log = structlog.get_logger("dynamo.bus.state")


@dataclass(slots=True, eq=False)
class _Outgoing:
    """A version of an object, or the deletion of one, that is to be published."""

    subject: str
    resource: Resource
    version: Version
    change: Change
    received: float
    headers: dict[str, str]
    obj: KubeObject | None = None
    """None: a tombstone"""


class StatePublisher:
    """Publishes the objects of one cluster. `run` must be running for anything to leave.

    `declares`: streams that it creates where they are missing, at the start, at each audit, and where STATE is lost.
    `clock` is the one that `received` is read from, in seconds; `now` is the time of day in markers.
    """

    def __init__(
        self,
        bus: Bus,
        cluster: str,
        *,
        declares: tuple[StreamSpec, ...] = (streams.STATE,),
        window: int = WINDOW,
        audit_interval: float = AUDIT_INTERVAL,
        clock: Callable[[], float] = time.time,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._bus = bus
        self._cluster = cluster
        self._declares = declares
        self._window = window
        self._audit_interval = audit_interval
        self._clock = clock
        self._now = now
        self._ledger = Ledger()
        self._waiting: dict[str, _Outgoing] = {}
        self._ready: deque[str] = deque()
        self._flying: dict[str, _Outgoing] = {}
        self._troubled: list[tuple[_Outgoing, BusError]] = []
        self._open: dict[str, int] = {}
        """resource id -> subjects with something that waits or flies"""
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()
        self._incarnation = ""
        self._round = 0
        self._backoff = Backoff(FIRST_RETRY, LAST_RETRY)
        self.lost = asyncio.Event()
        """Set when STATE has lost messages. Whoever sees it calls `start_over` and puts every object again."""

    @property
    def backlog(self) -> int:
        """Objects that are not acknowledged yet."""
        return sum(self._open.values())

    @property
    def incarnation(self) -> str:
        """Which making of the stream is published to."""
        return self._incarnation

    def count(self, resource: Resource) -> int:
        """Objects of a resource that STATE has."""
        return self._ledger.count(resource)

    def put(
        self, resource: Resource, obj: KubeObject, change: Change = Change.MODIFIED, *, received: float | None = None
    ) -> bool:
        """Queues an object unless STATE has it already; replaces an older version of it that is still waiting.

        `received`: when the API server told of it; now by default.
        """
        subject = subjects.state_subject(self._cluster, resource.id, key_of(obj))
        version = version_of(obj)
        newest = self._newest(resource, subject)
        if newest is not None and not is_newer(version, newest):
            return False
        headers = state.object_headers(obj, change)
        self._queue(_Outgoing(subject, resource, version, change, received or self._clock(), headers, obj))
        return True

    def delete(self, resource: Resource, key: ObjectKey, version: Version, *, received: float | None = None) -> bool:
        """Queues the tombstone of an object that is gone, unless STATE has none, or a newer one of its name."""
        subject = subjects.state_subject(self._cluster, resource.id, key)
        pending, known = self._pending(subject), self._ledger.get(resource, subject)
        gone = known is None or known.deleted
        if pending is None and gone:
            return False
        newest = self._newest(resource, subject)
        if newest is not None and newest.uid != version.uid and is_newer(newest, version):
            return False
        if newest is not None and newest.uid == version.uid:
            # The end of a uid is final, also where the list that lacks it does not say at which version it ended.
            version = version._replace(resource_version=max(version.resource_version, newest.resource_version))
        headers = state.tombstone_headers(version)
        self._queue(_Outgoing(subject, resource, version, Change.DELETED, received or self._clock(), headers))
        return True

    async def load(self, resources: Iterable[Resource]) -> None:
        """Reads which versions STATE has, so that only what is newer is published. Waits until the bus answers."""
        await self._with_patience(partial(self._bus.declare, *self._declares))
        await self._with_patience(self._adopt_stream)
        await self._ledger.load(self._bus, self._cluster, resources)

    async def sweep(self, resource: Resource, listed: Collection[ObjectKey]) -> int:
        """Queues tombstones for objects that STATE has and a complete, consistent list of the resource lacks.

        Returns how many are gone.
        """
        await self.flushed(resource)
        missing = self._ledger.missing(self._cluster, resource, listed)
        return sum(self.delete(resource, key, version) for key, version in missing)

    async def mark_synced(self, resource: Resource, list_version: str, *, served: bool = True) -> None:
        """Publishes the resource's marker, after all that was queued for the resource is acknowledged."""
        await self.flushed(resource)
        marker = state.SyncedMarker(
            resource=resource.id,
            resource_version=list_version,
            count=self._ledger.count(resource),
            time=cloudevents.timestamp(self._now()),
            served=served,
        )
        headers = state.synced_headers(marker)
        subject = subjects.synced_subject(self._cluster, resource.id)
        await self._with_patience(partial(self._bus.publish, subject, state.encode_marker(marker), headers=headers))
        metrics.STATE_PUBLISHED.labels(resource.id, Change.SYNCED.value).inc()

    async def flushed(self, resource: Resource) -> None:
        """Returns when nothing of the resource waits for its acknowledgement."""
        while self._open.get(resource.id):
            self._progress.clear()
            await self._progress.wait()

    def start_over(self) -> None:
        """Forgets what STATE was known to have: from now on everything that is put is published again."""
        self._ledger.clear()
        for subject in list(self._waiting):
            outgoing = self._waiting.pop(subject)
            if subject not in self._flying:
                self._count(outgoing.resource, -1)
        self._ready.clear()
        # A message that was lost must be stored again, not recognised as one that was stored before.
        self._round += 1
        self.lost.clear()
        self._progress.set()

    async def run(self) -> None:
        """Publishes for ever."""
        audit = asyncio.create_task(self._audit_for_ever(), name="state-audit")
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                # Once a turn: counting at each object would cost as much as a third of sending it.
                metrics.STATE_WAITING.set(self.backlog)
                while self._troubled:
                    await self._repair()
                await self._send_ready()
        finally:
            await ended(audit)

    async def audit(self) -> None:
        """Looks whether STATE holds at least what it must; BusUnavailableError where the bus does not answer."""
        await self._adopt_stream()
        await self._bus.declare(*self._declares)
        expected = self._ledger.total()
        found = await self._bus.stream_state(streams.STATE)
        if found.messages < expected:
            self._declare_lost(f"{found.messages} messages, at least {expected} expected")

    def _pending(self, subject: str) -> _Outgoing | None:
        return self._waiting.get(subject) or self._flying.get(subject)

    def _newest(self, resource: Resource, subject: str) -> Version | None:
        pending = self._pending(subject)
        if pending is not None:
            return pending.version
        known = self._ledger.get(resource, subject)
        return known.version if known is not None else None

    def _queue(self, outgoing: _Outgoing) -> None:
        tracing.inject(outgoing.headers)
        if self._pending(outgoing.subject) is None:
            self._count(outgoing.resource, 1)
            self._ready.append(outgoing.subject)
            self._wake.set()
        self._waiting[outgoing.subject] = outgoing

    def _count(self, resource: Resource, change: int) -> None:
        self._open[resource.id] = self._open.get(resource.id, 0) + change

    async def _send_ready(self) -> None:
        breath = BREATH
        while self._ready and len(self._flying) < self._window and not self._troubled:
            subject = self._ready.popleft()
            outgoing = self._waiting.pop(subject)
            self._flying[subject] = outgoing
            try:
                future = await self._send(outgoing)
            except BusError as error:
                self._fail(outgoing, error)
                return
            future.add_done_callback(partial(self._answered, outgoing))
            breath -= 1
            if not breath:
                breath = BREATH
                await asyncio.sleep(0)

    async def _send(self, outgoing: _Outgoing) -> asyncio.Future[Ack]:
        known = self._ledger.get(outgoing.resource, outgoing.subject)
        version = outgoing.version
        return await self._bus.send(
            outgoing.subject,
            state.encode_object(outgoing.obj) if outgoing.obj is not None else b"",
            headers=outgoing.headers,
            msg_id=f"{version.uid}-{version.resource_version}-{outgoing.change.value}-{self._round}",
            expected_last_subject_sequence=known.sequence if known is not None else 0,
            ttl=streams.TOMBSTONE_TTL if outgoing.change is Change.DELETED else 0.0,
        )

    def _answered(self, outgoing: _Outgoing, future: asyncio.Future[Ack]) -> None:
        error = BusUnavailableError("cancelled") if future.cancelled() else future.exception()
        if error is None:
            self._backoff.reset()
            sequence = future.result().sequence
            deleted = outgoing.change is Change.DELETED
            self._ledger.set(outgoing.resource.id, outgoing.subject, Known(sequence, outgoing.version, deleted))
            metrics.STATE_PUBLISHED.labels(outgoing.resource.id, outgoing.change.value).inc()
            metrics.STATE_LATENCY.observe(self._clock() - outgoing.received)
            self._landed(outgoing)
        else:
            self._fail(outgoing, error if isinstance(error, BusError) else BusError(str(error)))

    def _fail(self, outgoing: _Outgoing, error: BusError) -> None:
        self._troubled.append((outgoing, error))
        self._wake.set()

    def _landed(self, outgoing: _Outgoing) -> None:
        """The subject is free for the next publish."""
        del self._flying[outgoing.subject]
        if outgoing.subject in self._waiting:
            self._ready.append(outgoing.subject)
        else:
            self._count(outgoing.resource, -1)
            self._progress.set()
        self._wake.set()

    async def _repair(self) -> None:
        """Deals with publishes that were not acknowledged: each lands, or is queued again."""
        troubled, self._troubled = self._troubled, []
        away = next((error for _, error in troubled if isinstance(error, BusUnavailableError)), None)
        if away is not None:
            await self._recover(away)
        fenced = [outgoing for outgoing, error in troubled if isinstance(error, WrongSequenceError)]
        again = [outgoing for outgoing, error in troubled if isinstance(error, BusUnavailableError)]
        settled = await asyncio.gather(*(self._compare(outgoing) for outgoing in fenced))
        again += [outgoing for outgoing, done in zip(fenced, settled, strict=True) if not done]
        for outgoing, error in troubled:
            if isinstance(error, BusClosedError):
                raise error
            if not isinstance(error, BusUnavailableError | WrongSequenceError):
                log.error("object refused by STATE", subject=outgoing.subject, error=str(error))
                metrics.PUBLISH_ERRORS.labels(streams.STATE.name, "refused").inc()
        for outgoing in again:
            # A newer version may be waiting; then that one is sent instead.
            self._waiting.setdefault(outgoing.subject, outgoing)
        for outgoing, _ in troubled:
            self._landed(outgoing)

    async def _compare(self, outgoing: _Outgoing) -> bool:
        """After a wrong sequence: learns what STATE has. Says whether nothing is left to be done."""
        try:
            last = await self._bus.last_message(streams.STATE, outgoing.subject)
        except BusUnavailableError:
            return False
        before = self._ledger.drop(outgoing.resource, outgoing.subject)
        if last is None:
            if before is not None and not before.deleted:
                self._declare_lost("an object is gone from STATE")
            return False
        theirs, deleted = state.version_in(last.headers), state.is_tombstone(last.headers)
        self._ledger.set(outgoing.resource.id, outgoing.subject, Known(last.sequence, theirs, deleted))
        ends = outgoing.change is Change.DELETED
        if theirs.uid == outgoing.version.uid and deleted:
            # Nothing follows the end of a uid, neither a late version of it nor its end once more.
            return True
        if theirs.uid == outgoing.version.uid and ends:
            return False
        if is_newer(outgoing.version, theirs):
            return False
        if theirs != outgoing.version:
            metrics.STATE_FENCED.labels(outgoing.resource.id).inc()
            log.info("STATE has a newer version", subject=outgoing.subject)
        return True

    async def _recover(self, error: BusError) -> None:
        """Waits until the bus can be reached again and the stream is there."""
        metrics.PUBLISH_ERRORS.labels(streams.STATE.name, "unavailable").inc()
        log.debug("publishing to STATE waits", error=str(error), backlog=self.backlog)
        await asyncio.sleep(self._backoff.next())
        await self._with_patience(self._adopt_stream)

    async def _adopt_stream(self) -> None:
        """Declares the streams if need be and looks whether STATE is still the one that was published to."""
        try:
            found = await self._bus.stream_state(streams.STATE)
        except StreamNotFoundError:
            await self._bus.declare(*self._declares)
            found = await self._bus.stream_state(streams.STATE)
        if self._incarnation and found.incarnation != self._incarnation:
            self._declare_lost("the stream was made anew")
        self._incarnation = found.incarnation

    def _declare_lost(self, cause: str) -> None:
        if not self.lost.is_set():
            log.warning("STATE has lost objects", cause=cause)
            metrics.STATE_LOST.inc()
            self.lost.set()

    async def _audit_for_ever(self) -> None:
        """Audits now and then, and at each reconnection at once.

        A publish alone may not notice that data was lost: a reader may have declared the stream anew before it, and an
        object that STATE never had is stored in the empty one without complaint.
        """
        reconnected = asyncio.Event()
        forget = self._bus.on_health(lambda health: reconnected.set() if health is Health.CONNECTED else None)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._audit_interval):
                        await reconnected.wait()
                reconnected.clear()
                with suppress(BusUnavailableError):
                    await self.audit()
        finally:
            forget()

    async def _with_patience(self, work: Callable[[], Awaitable[object]]) -> None:
        """Does something as often as it takes until the bus answers."""
        backoff = Backoff(FIRST_RETRY, LAST_RETRY)
        while True:
            try:
                await work()
            except StreamNotFoundError:
                with suppress(BusUnavailableError):
                    await self._adopt_stream()
            except BusUnavailableError:
                await self._bus.wait_connected()
            else:
                return
            await asyncio.sleep(backoff.next())
