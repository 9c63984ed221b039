"""Publishes events without blocking the caller: a separate task empties an outbox.

Events wait until NATS has acknowledged them; namespaces take turns. While NATS is unavailable, up to `capacity` events
wait. Above that, the oldest event of the namespace with the most events is dropped and counted
(`dynamo_events_dropped_total`): the newest events describe the current state best. A later event of an object never
overtakes an earlier one.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import structlog

from dynamo_shared.aio import Backoff
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import key_of
from dynamo_shared.bus import metrics, streams, tracing
from dynamo_shared.bus.errors import (
    BusClosedError,
    BusError,
    BusUnavailableError,
    MessageTooLargeError,
    StreamNotFoundError,
)
from dynamo_shared.bus.protocol import Ack, Bus, OutgoingMessage
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications import find, fit
from dynamo_shared.wire.specifications.base import EventIdentity, EventSpec

CAPACITY = 10_000
"""Limit of waiting events: at 2 KiB each about 20 MiB, or all changes of 100 deployments for hours."""

WINDOW = 64
"""Events under way at once."""

FIRST_RETRY = 0.2
LAST_RETRY = 10.0

log = structlog.get_logger("dynamo.bus.events")


class _QueuedEvent(NamedTuple):
    source: str
    """cluster and namespace"""
    about: str
    """the common subject prefix of the events of its object"""
    message: OutgoingMessage


class EventPublisher:
    """Publishes the events of one cluster. Events are sent only while `run` is running."""

    def __init__(
        self,
        bus: Bus,
        cluster: str,
        *,
        capacity: int = CAPACITY,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._bus = bus
        self._cluster = cluster
        self._capacity = capacity
        self._now = now
        #: By source; the source that has waited longest for its turn comes first.
        self._outbox: OrderedDict[str, deque[_QueuedEvent]] = OrderedDict()
        self._wake = asyncio.Event()
        self._sending = asyncio.Lock()
        metrics.EVENT_PUBLISHERS.add(self)

    @property
    def waiting(self) -> int:
        """How many events are not acknowledged yet."""
        return sum(map(len, self._outbox.values()))

    def publish(
        self,
        *,
        kind: str,
        obj: KubeObject,
        event: str,
        data: msgspec.Struct | Mapping[str, Any],
        reason: str = "",
        causation_id: str = "",
    ) -> str:
        """Queue an event about an object and return its id, which is the same each time for the same event.

        `data` has the type in the table of `specifications/`, or is a mapping that fits it. KeyError for an event that
        the table lacks, msgspec.ValidationError for data that does not fit.
        """
        spec = find(kind, event)
        metadata = obj["metadata"]
        key = key_of(obj)
        checked = data if isinstance(data, spec.data) else fit(data, spec.data)
        version = metadata.get("resourceVersion", "")
        uid = metadata.get("uid", "")
        envelope = cloudevents.CloudEvent[Any](
            specversion="1.0",
            id=_identity(spec, uid, version, causation_id, reason),
            source=cloudevents.source(self._cluster, key.namespace),
            type=spec.type,
            subject=f"{spec.kind}/{key.name}",
            time=cloudevents.timestamp(self._now()),
            data=checked,
            datacontenttype="application/json",
            dataschema=cloudevents.schema_url(spec.type),
            k8suid=uid,
            resourceversion=version,
            generation=str(metadata.get("generation", "")),
            traceparent=tracing.traceparent(),
            causationid=causation_id,
        )
        self.put(subjects.event_subject(self._cluster, key.namespace, spec.kind, key.name, event), envelope)
        return envelope.id

    def put(self, subject: str, event: cloudevents.CloudEvent[Any]) -> None:
        """Queue a complete event."""
        message = OutgoingMessage(
            subject, cloudevents.encode(event), headers=cloudevents.mirrored_headers(event), msg_id=event.id
        )
        queued = _QueuedEvent(event.source, subject.rpartition(".")[0], message)
        self._outbox.setdefault(event.source, deque()).append(queued)
        if self.waiting > self._capacity:
            fullest = max(self._outbox, key=lambda source: len(self._outbox[source]))
            self._outbox[fullest].popleft()
            if not self._outbox[fullest]:
                del self._outbox[fullest]
            metrics.DROPPED_BY_CAUSE["full"].inc()
        self._wake.set()

    async def flush(self, timeout: float) -> bool:
        """Send what is queued, with or without `run`, for at most `timeout` seconds. Returns whether all was sent."""
        with suppress(TimeoutError, BusClosedError):
            async with asyncio.timeout(timeout):
                await self.flushed()
        return not self.waiting

    async def flushed(self) -> None:
        """Send what is queued, with or without `run`, and return when the outbox is empty. BusClosedError."""
        backoff = Backoff(FIRST_RETRY, LAST_RETRY)
        while self.waiting:
            await self._step(backoff)

    async def run(self) -> None:
        """Send what is queued until cancelled; `flush` can send the rest afterwards."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.flushed()

    async def _step(self, backoff: Backoff) -> None:
        """Send one batch; wait if that failed."""
        async with self._sending:
            try:
                await self._send_batch(self._batch())
            except StreamNotFoundError:
                with suppress(BusUnavailableError):
                    await self._bus.declare(streams.EVENTS)
            except BusUnavailableError as error:
                log.debug("events not published yet", waiting=self.waiting, error=str(error))
                await self._bus.wait_connected()
            else:
                backoff.reset()
                return
            await asyncio.sleep(backoff.next())

    def _batch(self) -> list[_QueuedEvent]:
        """The oldest events of each source, at most one per object: a retry cannot reorder one object's events."""
        batch: list[_QueuedEvent] = []
        about: set[str] = set()
        sources = list(self._outbox.values())
        for position in range(WINDOW):
            sources = [each for each in sources if position < len(each) and each[position].about not in about]
            oldest = [each[position] for each in sources[: WINDOW - len(batch)]]
            batch += oldest
            about.update(each.about for each in oldest)
        return batch

    async def _send(self, outgoing: _QueuedEvent) -> asyncio.Future[Ack]:
        """Send an event. One that is too large gets its error at once, and does not block the others."""
        try:
            return await self._bus.send(outgoing.message)
        except MessageTooLargeError as error:
            refused: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
            refused.set_exception(error)
            return refused

    async def _send_batch(self, batch: list[_QueuedEvent]) -> None:
        """Send events together and remove those that need no retry from the outbox."""
        futures: list[asyncio.Future[Ack]] = []
        trouble: BusUnavailableError | None = None
        done: set[int] = set()
        try:
            for outgoing in batch:
                future = await self._send(outgoing)
                futures.append(future)
        except BusUnavailableError as error:
            trouble = error
        results = await asyncio.gather(*futures, return_exceptions=True)
        for outgoing, result in zip(batch, results, strict=False):
            if isinstance(result, BusUnavailableError):
                trouble = result
                continue
            if isinstance(result, BusClosedError):
                raise result
            if isinstance(result, BusError):
                log.warning("event refused by NATS", subject=outgoing.message.subject, error=str(result))
                metrics.DROPPED_BY_CAUSE["refused"].inc()
            elif isinstance(result, BaseException):
                raise result
            else:
                metrics.EVENTS_PUBLISHED.inc()
            done.add(id(outgoing))
        # A full outbox may have dropped its oldest events meanwhile: remove by identity, never by position.
        for source in dict.fromkeys(outgoing.source for outgoing in batch if id(outgoing) in done):
            left = deque(each for each in self._outbox.pop(source, ()) if id(each) not in done)
            if left:
                self._outbox[source] = left
        if trouble is not None:
            raise trouble


def _identity(spec: EventSpec, uid: str, version: str, causation_id: str, reason: str) -> str:
    what = {EventIdentity.OBJECT: "", EventIdentity.VERSION: version, EventIdentity.CAUSE: causation_id}[spec.identity]
    return cloudevents.event_id(uid, what, spec.type, reason)
