"""The publisher of STATE, as its users call it; it puts the parts of this package together."""

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
    """Publishes the objects of one cluster. `run` must be running for anything to leave.

    Where STATE may have objects already, `load` comes before what is put. `run` checks STATE against what was read or put.

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
        """Set when STATE has lost messages. The observer calls `start_over` and puts every object again."""
        return self._stream.lost

    @property
    def backlog(self) -> int:
        """Objects that are not acknowledged yet."""
        return len(self._outbox)

    @property
    def incarnation(self) -> str:
        """The incarnation of the stream that is published to."""
        return self._stream.incarnation

    def on_refused(self, observer: Callable[[str], None]) -> None:
        """Calls back with which objects STATE does not take as they are, whenever that changes; empty where it takes all."""
        self._refusals.on_change = observer

    def on_stalled(self, observer: Callable[[str], None]) -> None:
        """Calls back with why STATE takes nothing, as where its server's storage is full, and with "" once it does again."""
        self._sender.on_stalled = observer

    def on_too_large(self, observer: Callable[[KubeObject, str], None]) -> None:
        """Calls back with each object that STATE does not take, and a sentence for its owner, at each attempt."""
        self._refusals.on_too_large = observer

    def count(self, resource: Resource) -> int:
        """Objects of a resource that STATE has."""
        return self._ledger.count(resource)

    def put(
        self,
        resource: Resource,
        obj: KubeObject,
        change: ChangeType = ChangeType.MODIFIED,
        *,
        received: float | None = None,
    ) -> bool:
        """Queues an object unless STATE has it already; replaces an older version of it that is still waiting.

        `received`: when the API server reported it; now by default.
        """
        subject = subjects.state_subject(self._cluster, resource.id, key_of(obj))
        if self._desired.has(resource, subject, obj):
            self._refusals.remove(subject)
            return False
        self._outbox.add(object_message(subject, resource, obj, change, received or self._clock()))
        return True

    def delete(self, resource: Resource, key: ObjectKey, version: Version, *, received: float | None = None) -> bool:
        """Queues the tombstone of an object that is gone, unless STATE has none, or a newer one of its name."""
        subject = subjects.state_subject(self._cluster, resource.id, key)
        if self._desired.is_gone(resource, subject):
            self._refusals.remove(subject)
            return False
        newest = self._desired.version(resource, subject)
        if newest is not None and newest.uid == version.uid:
            # The end of a uid is final, also where the list that lacks it does not say at which version it ended.
            version = version._replace(resource_version=max(version.resource_version, newest.resource_version))
        self._outbox.add(tombstone(subject, resource, version, received or self._clock()))
        return True

    async def load(
        self, *stages: Iterable[Resource], loaded: Callable[[Resource], None] = lambda _resource: None
    ) -> None:
        """Reads what STATE has, so that only what differs is published. Waits until the bus answers.

        Of several stages one is read after the other. `loaded` is called with each resource that is read: from then on its
        objects may be put and swept, while others are still read. STATE is checked once all are.
        """
        parts = [part for part in map(list, stages) if part]
        self._resources |= {resource.id: resource for part in parts for resource in part}
        with self._ledger.incomplete():
            await self._stream.retried(self._stream.declare)
            await self._stream.retried(self._stream.adopt)
            # Before the reading: what is published while it goes on may be this publisher's own.
            await self._stream.retried(self._audit.set_baseline)
            for part in parts:
                await self._ledger.load(self._stream.bus, self._cluster, part)
                for resource in part:
                    loaded(resource)

    async def sweep(self, resource: Resource, listed: Container[ObjectKey]) -> int:
        """Queues tombstones for objects that STATE has and a complete, consistent list of the resource lacks.

        Returns how many are gone.
        """
        await self.flushed(resource)
        missing = self._ledger.missing(resource, listed)
        return sum(self.delete(resource, key, version) for key, version in missing)

    async def mark_synced(self, resource: Resource, list_version: str, *, served: bool = True) -> None:
        """Publishes the resource's marker, after all that was queued for the resource is acknowledged."""
        await self._markers.publish(resource, list_version, served=served)

    async def flushed(self, resource: Resource) -> None:
        """Returns when nothing of the resource waits for its acknowledgement."""
        await self._outbox.flushed(resource)

    async def room(self) -> None:
        """Returns when so little waits that more may be put, as a rule at once. Who may put very much asks for it."""
        await self._outbox.room()

    def start_over(self) -> None:
        """Forgets what STATE was known to have: from now on everything that is put is published again."""
        for part in (self._ledger, self._markers, self._refusals, self._outbox):
            part.clear()
        self._sender.start_over()
        self._stream.start_over()

    async def run(self) -> None:
        """Publishes until cancelled."""
        forget = self._stream.bus.on_health(
            lambda health: self._refusals.retry() if health is BusHealth.CONNECTED else None
        )
        try:
            await either(self._sender.run(), self._audit.run(self._audit_interval))
        finally:
            forget()
