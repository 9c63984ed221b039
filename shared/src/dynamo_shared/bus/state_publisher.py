"""Publishing objects to STATE: fenced, pipelined, and aware of what STATE has.

The publisher remembers for each subject the sequence and the version of its last message, and publishes against that
sequence. What can happen to a publish:

1. Acknowledged: remembered.
2. Wrong sequence: someone else has published (another watcher, a forger), or the message is gone (tombstone expired,
   stream lost). Which of the two is right is not concluded from versions: `truth` is asked for the object as it is now,
   and that is published against the right sequence. So a watcher that lost its election publishes nothing outdated.
3. No answer: tried again when the bus can be reached. If it was stored after all, the message id makes the second one a
   duplicate, or (2) finds our own message there.
4. No stream: the streams are declared again, and STATE counts as lost.

What others put into STATE, or a storage that was set back, is noticed without a publish, too: `audit` checks every 15
seconds whether the stream's sequence is where our own publishes have brought it, and reads the sequences of all
subjects after each reconnection, a minute at most after others published, and every five minutes in any case. What is
not the message that we published is set right from `truth`; much of it means that STATE is lost, and everything is
read and listed again.

For each subject at most one publish is on its way, and at most one newer version waits: of a burst of changes of one
object the first and the last are published. Over all subjects `window` publishes are on their way at once.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, TypeAlias

import structlog

from dynamo_shared.aio import Backoff, ended
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource, key_of
from dynamo_shared.bus import cloudevents, metrics, state, streams, subjects, tracing
from dynamo_shared.bus.errors import (
    BusClosedError,
    BusError,
    BusUnavailableError,
    MessageTooLargeError,
    StreamNotFoundError,
    WrongSequenceError,
)
from dynamo_shared.bus.protocol import Ack, Bus, Health, Message, StreamState
from dynamo_shared.bus.sizes import MAX_PAYLOAD
from dynamo_shared.bus.state import Change
from dynamo_shared.bus.state_ledger import Known, Ledger, last_messages, resource_of
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.bus.versions import Version, version_of

TOO_LARGE = (
    "the platform does not act on this version of the object: it is larger, compressed, than its message bus takes; "
    "make it smaller, or ask who runs the platform to raise max_payload of its NATS server"
)
"""For the owner of an object, who sees neither the watcher's log nor its /readyz."""

WINDOW = 256
"""Publishes on their way at once. Enough to keep the server busy; more only makes each wait longer."""

BREATH = 32
"""Publishes after which other tasks get a turn; a few milliseconds."""

AUDIT_INTERVAL = 15.0
"""Seconds between checks whether STATE is still the stream that it was, and holds what it must."""

FOREIGN_INTERVAL = 60.0
"""Seconds between readings of all sequences while others publish to the stream, too (model-discovery does)."""

SCAN_INTERVAL = 300.0
"""Seconds between readings of all sequences in any case."""

APPLIED_WITHIN = 1.0
"""Seconds that a leader of the stream is given to apply what was acknowledged before it was elected."""

MOST_SUSPECTS = 256
"""Subjects that are set right one by one; of more, everything is."""

FIRST_RETRY = 0.05
LAST_RETRY = 5.0

log = structlog.get_logger("dynamo.bus.state")


Truth: TypeAlias = Callable[[Resource, ObjectKey], Awaitable[KubeObject | None]]
"""An object as it is now, or None."""

_MOST = 2**63 - 1


class _Marker(NamedTuple):
    sequence: int
    resource: Resource
    list_version: str
    served: bool


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
    `truth` gives an object as it is now, or None; without it, what is put here is the truth. It may raise:
    then it is asked again later.
    `clock` is the one that `received` is read from, in seconds; `now` is the time of day in markers.
    """

    def __init__(
        self,
        bus: Bus,
        cluster: str,
        *,
        declares: tuple[StreamSpec, ...] = (streams.STATE,),
        window: int = WINDOW,
        truth: Truth | None = None,
        audit_interval: float = AUDIT_INTERVAL,
        clock: Callable[[], float] = time.time,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._bus = bus
        self._cluster = cluster
        self._declares = declares
        self._window = window
        self._truth = truth
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
        self._nonce = uuid.uuid4().hex
        """No one else can publish under our message ids beforehand, and make duplicates of our messages."""
        self._resources: dict[str, Resource] = {}
        self._refused: dict[str, str] = {}
        self._on_refused: Callable[[str], None] = lambda _: None
        self._on_too_large: Callable[[KubeObject, str], None] = lambda _obj, _words: None
        self._markers: dict[str, _Marker] = {}
        self._baseline = 0
        """the stream's last sequence when all was read last, and our own publishes since"""
        self._own = 0
        self._highest = 0
        self._scanned_at = clock()
        self._scan_due = False
        self._backoff = Backoff(FIRST_RETRY, LAST_RETRY)
        self.lost = asyncio.Event()
        """Set when STATE has lost messages. The observer calls `start_over` and puts every object again."""

    def on_refused(self, observer: Callable[[str], None]) -> None:
        """Calls back with which objects STATE does not take as they are, whenever that changes; empty where it takes all."""
        self._on_refused = observer

    def on_too_large(self, observer: Callable[[KubeObject, str], None]) -> None:
        """Calls back with each object that STATE does not take, and a sentence for its owner, at each attempt."""
        self._on_too_large = observer

    def _refusals(self) -> str:
        if not self._refused:
            return ""
        reason = next(iter(self._refused.values()))
        return (
            f"{len(self._refused)} objects are in STATE as they were before; the first: {reason[:300]}; "
            f"max_payload of the NATS server must be {MAX_PAYLOAD} (dynamoctl nats-config)"
        )

    @property
    def backlog(self) -> int:
        """Objects that are not acknowledged yet."""
        return sum(self._open.values())

    @property
    def incarnation(self) -> str:
        """The incarnation of the stream that is published to."""
        return self._incarnation

    def count(self, resource: Resource) -> int:
        """Objects of a resource that STATE has."""
        return self._ledger.count(resource)

    def put(
        self, resource: Resource, obj: KubeObject, change: Change = Change.MODIFIED, *, received: float | None = None
    ) -> bool:
        """Queues an object unless STATE has it already; replaces an older version of it that is still waiting.

        `received`: when the API server reported it; now by default.
        """
        subject = subjects.state_subject(self._cluster, resource.id, key_of(obj))
        version = version_of(obj)
        newest = self._newest(resource, subject)
        same = newest is not None and newest[:2] == version[:2]
        if same and not self._is_gone(resource, subject) and self._holds(resource, subject, obj):
            return False
        self._put(resource, subject, obj, change, received)
        return True

    def _put(
        self, resource: Resource, subject: str, obj: KubeObject, change: Change, received: float | None = None
    ) -> None:
        headers = state.object_headers(obj, change)
        self._queue(_Outgoing(subject, resource, version_of(obj), change, received or self._clock(), headers, obj))

    def _is_gone(self, resource: Resource, subject: str) -> bool:
        pending, known = self._pending(subject), self._ledger.get(resource, subject)
        if pending is not None:
            return pending.change is Change.DELETED
        return known is None or known.deleted

    def _holds(self, resource: Resource, subject: str, obj: KubeObject) -> bool:
        """Whether STATE has just this object under this version: of what was there before us, that is not certain."""
        known = self._ledger.get(resource, subject)
        if self._pending(subject) is not None or known is None or not known.digest:
            return True
        same = known.digest == hash(state.pack(state.encode_object(obj))[0])
        known.digest = 0
        return same

    def delete(self, resource: Resource, key: ObjectKey, version: Version, *, received: float | None = None) -> bool:
        """Queues the tombstone of an object that is gone, unless STATE has none, or a newer one of its name."""
        subject = subjects.state_subject(self._cluster, resource.id, key)
        if self._is_gone(resource, subject):
            return False
        newest = self._newest(resource, subject)
        if newest is not None and newest.uid == version.uid:
            # The end of a uid is final, also where the list that lacks it does not say at which version it ended.
            version = version._replace(resource_version=max(version.resource_version, newest.resource_version))
        headers = state.tombstone_headers(version)
        self._queue(_Outgoing(subject, resource, version, Change.DELETED, received or self._clock(), headers))
        return True

    async def load(self, resources: Iterable[Resource]) -> None:
        """Reads what STATE has, so that only what differs is published. Waits until the bus answers."""
        resources = list(resources)
        self._resources |= {resource.id: resource for resource in resources}
        await self._retried(partial(self._bus.declare, *self._declares))
        await self._retried(self._adopt_stream)
        await self._ledger.load(self._bus, self._cluster, resources)
        await self._retried(self._set_baseline)

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

        async def publish() -> None:
            ack = await self._bus.publish(subject, state.encode_marker(marker), headers=headers)
            self._markers[subject] = _Marker(ack.sequence, resource, list_version, served)
            self._count_own(ack)

        await self._retried(publish)
        metrics.STATE_PUBLISHED.labels(resource.id, Change.SYNCED.value).inc()

    async def flushed(self, resource: Resource) -> None:
        """Returns when nothing of the resource waits for its acknowledgement."""
        while self._open.get(resource.id):
            self._progress.clear()
            await self._progress.wait()

    def start_over(self) -> None:
        """Forgets what STATE was known to have: from now on everything that is put is published again."""
        self._ledger.clear()
        self._markers.clear()
        self._refused.clear()
        self._highest = 0
        for subject in list(self._waiting):
            outgoing = self._waiting.pop(subject)
            if subject not in self._flying:
                self._count(outgoing.resource, -1)
        self._ready.clear()
        # A message that was lost must be stored again, not recognised as one that was stored before.
        self._nonce = uuid.uuid4().hex
        self.lost.clear()
        self._progress.set()

    async def run(self) -> None:
        """Publishes until cancelled."""
        audit = asyncio.create_task(self._audit_at_intervals(), name="state-audit")
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
        """Checks whether STATE holds what it must, and nothing else; BusUnavailableError where the bus does not answer."""
        await self._adopt_stream()
        await self._bus.declare(*self._declares)
        stream = await self._bus.stream_state(streams.STATE)
        if self._lacking(stream):
            # A leader that has just been elected may still apply what was acknowledged.
            await asyncio.sleep(APPLIED_WITHIN)
            stream = await self._bus.stream_state(streams.STATE)
        if lacking := self._lacking(stream):
            self._declare_lost(lacking)
        if self.lost.is_set():
            return
        age = self._clock() - self._scanned_at
        foreign = stream.last_sequence - self._baseline > self._own
        if self._scan_due or age >= SCAN_INTERVAL or (foreign and age >= FOREIGN_INTERVAL):
            await self.scan()

    def _lacking(self, stream: StreamState) -> str:
        """What the stream does not have any more; empty where it has all that it acknowledged."""
        expected = self._ledger.total()
        if stream.messages < expected:
            return f"{stream.messages} messages, at least {expected} expected"
        if stream.last_sequence < self._highest:
            return f"it was set back to {stream.last_sequence}, after {self._highest}"
        return ""

    async def scan(self) -> None:
        """Reads the sequences of all subjects, and sets right what is not the message that was published here."""
        self._scan_due = False
        await self._set_baseline()
        suspects: dict[str, str] = {}
        met: set[str] = set()
        markers = {subjects.synced_subject(self._cluster, resource_id) for resource_id in self._resources}
        async for message in last_messages(self._bus, self._cluster, self._resources.values(), headers_only=True):
            if message is None:
                suspects.clear()
                met.clear()
                continue
            subject = message.subject
            met.add(subject)
            if subject in markers:
                # Without a marker of this watcher: a watcher before this one has listed the resource, and this one has not yet.
                marker = self._markers.get(subject)
                if marker is not None and marker.sequence != message.sequence:
                    await self.mark_synced(marker.resource, marker.list_version, served=marker.served)
                continue
            resource_id = resource_of(subject)
            known = self._ledger.get(self._resources[resource_id], subject) if resource_id in self._resources else None
            sequence, gone = (known.sequence, known.deleted) if known is not None else (0, True)
            if sequence != message.sequence and not (gone and state.is_tombstone(message.headers)):
                suspects[subject] = resource_id or ""
        suspects |= {subject: resource_id for resource_id, subject in self._ledger.subjects() if subject not in met}
        if len(suspects) > MOST_SUSPECTS:
            self._declare_lost(f"{len(suspects)} objects are not as they were published")
            return
        for subject, resource_id in suspects.items():
            await self._verify(self._resources.get(resource_id), subject)
        await self._set_baseline()

    async def _set_baseline(self) -> None:
        stream = await self._bus.stream_state(streams.STATE)
        self._baseline, self._own, self._scanned_at = stream.last_sequence, 0, self._clock()
        self._highest = max(self._highest, stream.last_sequence)

    async def _verify(self, resource: Resource | None, subject: str) -> None:
        """Sets one subject right, unless it was read too early or late and is as it was published."""
        last = await self._bus.last_message(streams.STATE, subject)
        if resource is None or resource_of(subject) is None:
            # No object has this subject.
            if last is not None and not state.is_tombstone(last.headers):
                await self._clear_away(subject)
            return
        known = self._ledger.get(resource, subject)
        if self._pending(subject) is not None:
            return
        if (last.sequence if last is not None else 0) == (known.sequence if known is not None else 0):
            return
        if self._truth is None:
            self._declare_lost("others have published")
            return
        key = subjects.parse_state(subject).key
        try:
            obj = await self._truth(resource, key)
        except Exception as error:
            log.warning("cannot set an object in STATE right yet", subject=subject, error=str(error))
            self._scan_due = True
            return
        metrics.STATE_CORRECTED.labels(resource.id).inc()
        log.warning("an object in STATE was not as it was published, and is set right", subject=subject)
        self._adopt(resource, subject, last)
        if self._pending(subject) is None:
            self._restore(resource, subject, obj)

    def _adopt(self, resource: Resource, subject: str, last: Message | None) -> None:
        """What is there now is what the next publish is held against."""
        if last is None:
            self._ledger.drop(resource, subject)
            return
        known = Known(last.sequence, state.version_in(last.headers), state.is_tombstone(last.headers))
        self._ledger.set(resource.id, subject, known)

    def _restore(self, resource: Resource, subject: str, obj: KubeObject | None) -> None:
        if obj is not None:
            self._put(resource, subject, obj, Change.MODIFIED)
        elif not self._is_gone(resource, subject):
            known = self._ledger.get(resource, subject)
            version = known.version if known is not None and known.version.uid else Version("unknown", 0, "")
            version = version._replace(resource_version=min(version.resource_version, _MOST))
            headers = state.tombstone_headers(version)
            self._queue(_Outgoing(subject, resource, version, Change.DELETED, self._clock(), headers))

    async def _clear_away(self, subject: str) -> None:
        log.warning("a message in STATE that is about no object is cleared away", subject=subject[:500])
        headers = state.tombstone_headers(Version("unknown", 0, ""))
        ack = await self._bus.publish(subject, b"", headers=headers, ttl=streams.TOMBSTONE_TTL)
        self._count_own(ack)

    def _count_own(self, ack: Ack) -> None:
        if not ack.duplicate:
            self._own += 1
        self._highest = max(self._highest, ack.sequence)

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
        version, expected = outgoing.version, known.sequence if known is not None else 0
        payload = b""
        encoding: dict[str, str] = {}
        if outgoing.obj is not None:
            payload, encoding = state.pack(state.encode_object(outgoing.obj))
        return await self._bus.send(
            outgoing.subject,
            payload,
            headers=outgoing.headers | encoding if encoding else outgoing.headers,
            # With the sequence: the same version is published again where something else took its place.
            msg_id=f"{version.uid[:64]}-{version.resource_version}-{outgoing.change.value}-{expected}-{self._nonce}",
            expected_last_subject_sequence=expected,
            ttl=streams.TOMBSTONE_TTL if outgoing.change is Change.DELETED else 0.0,
        )

    def _answered(self, outgoing: _Outgoing, future: asyncio.Future[Ack]) -> None:
        error = BusUnavailableError("cancelled") if future.cancelled() else future.exception()
        if error is None:
            self._backoff.reset()
            self._count_own(future.result())
            sequence = future.result().sequence
            deleted = outgoing.change is Change.DELETED
            self._ledger.set(outgoing.resource.id, outgoing.subject, Known(sequence, outgoing.version, deleted))
            if self._refused.pop(outgoing.subject, None) is not None:
                self._on_refused(self._refusals())
            metrics.STATE_PUBLISHED.labels(outgoing.resource.id, outgoing.change.value).inc()
            metrics.STATE_LATENCY.observe(self._clock() - outgoing.received)
            self._settled(outgoing)
        else:
            self._fail(outgoing, error if isinstance(error, BusError) else BusError(str(error)))

    def _fail(self, outgoing: _Outgoing, error: BusError) -> None:
        self._troubled.append((outgoing, error))
        self._wake.set()

    def _settled(self, outgoing: _Outgoing) -> None:
        """The subject is free for the next publish."""
        del self._flying[outgoing.subject]
        if outgoing.subject in self._waiting:
            self._ready.append(outgoing.subject)
        else:
            self._count(outgoing.resource, -1)
            self._progress.set()
        self._wake.set()

    async def _repair(self) -> None:
        """Deals with publishes that were not acknowledged: each is settled, or queued again."""
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
                self._refused[outgoing.subject] = str(error)
                self._on_refused(self._refusals())
                if outgoing.obj is not None and isinstance(error, MessageTooLargeError):
                    self._on_too_large(outgoing.obj, TOO_LARGE)
                metrics.PUBLISH_ERRORS.labels(streams.STATE.name, "refused").inc()
        for outgoing in again:
            # A newer version may be waiting; then that one is sent instead.
            self._waiting.setdefault(outgoing.subject, outgoing)
        for outgoing, _ in troubled:
            self._settled(outgoing)

    async def _compare(self, outgoing: _Outgoing) -> bool:
        """After a wrong sequence: learns what STATE has. Says whether nothing is left to be done for this version."""
        try:
            last = await self._bus.last_message(streams.STATE, outgoing.subject)
        except BusUnavailableError:
            return False
        before = self._ledger.get(outgoing.resource, outgoing.subject)
        self._adopt(outgoing.resource, outgoing.subject, last)
        if last is None:
            if before is not None and not before.deleted:
                self._declare_lost("an object is gone from STATE")
            return False
        payload = state.pack(state.encode_object(outgoing.obj))[0] if outgoing.obj is not None else b""
        if last.payload == payload and state.version_in(last.headers)[:2] == outgoing.version[:2]:
            # Our own, whose acknowledgement was lost; or another watcher's, which is the same.
            return True
        if self._truth is None or outgoing.subject in self._waiting:
            return False
        metrics.STATE_CORRECTED.labels(outgoing.resource.id).inc()
        log.info("others have published an object to STATE", subject=outgoing.subject)
        try:
            obj = await self._truth(outgoing.resource, subjects.parse_state(outgoing.subject).key)
        except Exception as error:
            log.warning("cannot ask how an object is now", subject=outgoing.subject, error=str(error))
            await asyncio.sleep(self._backoff.next())
            return False
        if outgoing.subject not in self._waiting:
            self._replace(outgoing, obj, last)
        return True

    def _replace(self, outgoing: _Outgoing, obj: KubeObject | None, last: Message) -> None:
        """Lets the truth wait in the place of what was sent, unless STATE says it already."""
        if obj is None:
            if not state.is_tombstone(last.headers):
                headers = state.tombstone_headers(outgoing.version)
                self._waiting[outgoing.subject] = _Outgoing(
                    outgoing.subject, outgoing.resource, outgoing.version, Change.DELETED, outgoing.received, headers
                )
            return
        if last.payload != state.pack(state.encode_object(obj))[0]:
            headers = state.object_headers(obj, Change.MODIFIED)
            self._waiting[outgoing.subject] = _Outgoing(
                outgoing.subject, outgoing.resource, version_of(obj), Change.MODIFIED, outgoing.received, headers, obj
            )

    async def _recover(self, error: BusError) -> None:
        """Waits until the bus can be reached again and the stream is there."""
        metrics.PUBLISH_ERRORS.labels(streams.STATE.name, "unavailable").inc()
        log.debug("publishing to STATE waits", error=str(error), backlog=self.backlog)
        await asyncio.sleep(self._backoff.next())
        await self._retried(self._adopt_stream)

    async def _adopt_stream(self) -> None:
        """Declares the streams if need be and checks whether STATE is still the one that was published to."""
        try:
            stream = await self._bus.stream_state(streams.STATE)
        except StreamNotFoundError:
            await self._bus.declare(*self._declares)
            stream = await self._bus.stream_state(streams.STATE)
        if self._incarnation and stream.incarnation != self._incarnation:
            self._declare_lost("the stream was recreated")
        self._incarnation = stream.incarnation

    def _declare_lost(self, cause: str) -> None:
        if not self.lost.is_set():
            log.warning("STATE has lost objects", cause=cause)
            metrics.STATE_LOST.inc()
            self.lost.set()

    async def _audit_at_intervals(self) -> None:
        """Audits at intervals, and at each reconnection at once.

        A publish alone may not notice that data was lost: a reader may have recreated the stream before it, and an
        object that STATE never had is stored in the empty one without complaint.
        """
        reconnected = asyncio.Event()
        forget = self._bus.on_health(lambda health: reconnected.set() if health is Health.CONNECTED else None)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._audit_interval):
                        await reconnected.wait()
                self._scan_due = self._scan_due or reconnected.is_set()
                reconnected.clear()
                with suppress(BusUnavailableError):
                    await self.audit()
        finally:
            forget()

    async def _retried(self, work: Callable[[], Awaitable[object]]) -> None:
        """Repeats the work until the bus answers."""
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
