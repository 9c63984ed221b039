"""The publisher of STATE: the interface for users, which combines the parts of this package."""

import asyncio
import time
from collections.abc import Callable, Container, Iterable
from datetime import UTC, datetime

from dynamo_shared.aio import Backoff, either
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource, key_of
from dynamo_shared.bus import metrics, streams
from dynamo_shared.bus.protocol import Bus, BusHealth
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.state.messages import ChangeType
from dynamo_shared.state.publisher.audit import INTERVAL, Audit
from dynamo_shared.state.publisher.correction import Correction, Truth
from dynamo_shared.state.publisher.desired import Desired
from dynamo_shared.state.publisher.ledger import Ledger
from dynamo_shared.state.publisher.markers import Markers
from dynamo_shared.state.publisher.outbox import Outbox, object_message, tombstone
from dynamo_shared.state.publisher.refusals import Refusals
from dynamo_shared.state.publisher.sender import Sender
from dynamo_shared.state.publisher.stream import FIRST_RETRY, LAST_RETRY, StateStream
from dynamo_shared.state.versions import Version
from dynamo_shared.wire import subjects


class StatePublisher:
    """Publishes the objects of one cluster. Messages are sent only while `run` is running.

    If STATE may already have objects, call `load` before `put`. `run` compares STATE with what was read or put.
    `declares`: streams that are created if they are missing: at the start, at each audit, and when STATE is lost.
    `truth` returns the current object, or None; without it, the put objects are the truth. If it raises, it is called
    again later.
    `clock`: the clock of `received`, in seconds; `now`: the time of day in markers.
    """

    def __init__(
        self,
        bus: Bus,
        cluster: str,
        *,
        declares: tuple[StreamSpec, ...] = (streams.STATE,),
        truth: Truth | None = None,
        audit_interval: float = INTERVAL,
        clock: Callable[[], float] = time.time,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._audit_interval = audit_interval
        self._clock = clock
        self._resources: dict[str, Resource] = {}
        self._ledger = Ledger()
        self._outbox = Outbox()
        self._desired = desired = Desired(self._ledger, self._outbox)
        self._stream = stream = StateStream(bus, cluster, declares)
        self._refusals = refusals = Refusals(self._outbox, stream.declare_lost)
        self._markers = markers = Markers(stream, desired, now)
        backoff = Backoff(FIRST_RETRY, LAST_RETRY)
        correction = Correction(stream, desired, truth, backoff, clock)
        self._sender = Sender(stream, desired, correction, refusals, backoff=backoff, clock=clock)
        metrics.STATE_PUBLISHERS.add(self)
        self._audit = Audit(stream, desired, markers, correction, resources=self._resources, clock=clock)

    @property
    def lost(self) -> asyncio.Event:
        """Set when STATE has lost messages. The caller then calls `start_over` and puts every object again."""
        return self._stream.lost

    @property
    def backlog(self) -> int:
        """How many objects are not acknowledged yet."""
        return len(self._outbox)

    @property
    def incarnation(self) -> str:
        """The incarnation of the stream that receives the messages."""
        return self._stream.incarnation

    def on_refused(self, observer: Callable[[str], None]) -> None:
        """Register a callback for a sentence about the objects that STATE refuses, at each change; "" if there are none."""
        self._refusals.on_change = observer

    def on_stalled(self, observer: Callable[[str], None]) -> None:
        """Register a callback for why STATE accepts nothing, such as full storage; "" when it accepts again."""
        self._stream.on_stalled = observer

    def on_too_large(self, observer: Callable[[KubeObject, str], None]) -> None:
        """Register a callback for each object that STATE refuses, with a sentence for its owner, at each attempt."""
        self._refusals.on_too_large = observer

    def count(self, resource: Resource) -> int:
        """How many objects of a resource STATE has."""
        return self._ledger.count(resource)

    def put(
        self,
        resource: Resource,
        obj: KubeObject,
        change: ChangeType = ChangeType.MODIFIED,
        *,
        received: float | None = None,
    ) -> bool:
        """Queue an object unless STATE has it already; it replaces an older waiting version.

        `received`: when the API server reported it; by default now.
        """
        subject = subjects.state_subject(self._cluster, resource.id, key_of(obj))
        if self._desired.has(resource, subject, obj):
            self._refusals.remove(subject)
            return False
        self._outbox.add(object_message(subject, resource, obj, change, received or self._clock()))
        return True

    def delete(self, resource: Resource, key: ObjectKey, version: Version, *, received: float | None = None) -> bool:
        """Queue the tombstone of a deleted object, unless STATE has no object of this name."""
        subject = subjects.state_subject(self._cluster, resource.id, key)
        if self._desired.is_gone(resource, subject):
            self._refusals.remove(subject)
            return False
        newest = self._desired.version(resource, subject)
        if newest is not None and newest.uid == version.uid:
            # The deletion of a uid is final, even if the list without the object does not state the version of the deletion.
            version = version._replace(resource_version=max(version.resource_version, newest.resource_version))
        self._outbox.add(tombstone(subject, resource, version, received or self._clock()))
        return True

    async def load(
        self, *stages: Iterable[Resource], loaded: Callable[[Resource], None] = lambda _resource: None
    ) -> None:
        """Read what STATE has, so that only differences are published. Waits until the bus answers.

        Stages are read one after the other. `loaded` is called with each resource that is read: from then on its
        objects may be put and swept, while others are still being read. STATE is audited once all are read.
        """
        parts = [part for part in map(list, stages) if part]
        self._resources |= {resource.id: resource for part in parts for resource in part}
        with self._ledger.incomplete():
            await self._stream.retried(self._stream.declare)
            await self._stream.retried(self._stream.adopt)
            # Before the reading: messages published during it may be this publisher's own.
            await self._stream.retried(self._audit.set_baseline)
            for part in parts:
                await self._ledger.load(self._stream.bus, self._cluster, part)
                for resource in part:
                    loaded(resource)

    async def sweep(self, resource: Resource, listed: Container[ObjectKey]) -> int:
        """Queue tombstones for objects in STATE that are missing from a complete, consistent list of the resource.

        Returns how many are missing.
        """
        await self.flushed(resource)
        missing = await self._ledger.missing(resource, listed)
        return sum(self.delete(resource, key, version) for key, version in missing if self._has(resource, key, version))

    def _has(self, resource: Resource, key: ObjectKey, version: Version) -> bool:
        """Whether the newest message of an object has this version: another one may have been put meanwhile."""
        subject = subjects.state_subject(self._cluster, resource.id, key)
        return self._desired.version(resource, subject) == version

    async def mark_synced(self, resource: Resource, list_version: str, *, served: bool = True) -> None:
        """Publish the resource's marker after all queued messages of the resource are acknowledged."""
        await self._markers.publish(resource, list_version, served=served)

    async def flushed(self, resource: Resource) -> None:
        """Return when all messages of the resource are acknowledged."""
        await self._outbox.flushed(resource)

    async def room(self) -> None:
        """Return when few enough messages wait, usually at once. Callers that may put very many objects await it."""
        await self._outbox.room()

    def start_over(self) -> None:
        """Forget what STATE was known to have: from now on every put object is published again."""
        for part in (self._ledger, self._markers, self._refusals, self._outbox):
            part.clear()
        self._sender.start_over()
        self._stream.start_over()

    async def run(self) -> None:
        """Publish until cancelled."""
        forget = self._stream.bus.on_health(
            lambda health: self._refusals.retry() if health is BusHealth.CONNECTED else None
        )
        try:
            await either(self._sender.run(), self._audit.run(self._audit_interval))
        finally:
            forget()
