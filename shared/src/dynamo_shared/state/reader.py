"""Keeps an object cache equal to STATE, despite lost connections and lost streams.

Events, and what the reader does:

1. It starts: it reads the last message of each subject. A resource is synced when these are read and the watcher's
   marker for the resource is among them, or has arrived since.
2. The connection was lost, a message is missing, or the stream was lost and recreated: it reads the last messages
   again. Objects in the cache that are missing from the second reading are removed, but only when the resource's marker
   has arrived again: a recreated stream is empty until the watcher has refilled it.
3. NATS is unavailable: the cache stays as it is.
4. Its replica gains partitions: it reads the last messages again, now with the partitions' objects of the resources of
   which it reads a share. Partitions are gained one by one, and each reading covers all of STATE, so the reader waits
   briefly for more gains, and for the end of a reading for earlier gains. Cached objects stay in use meanwhile. Objects
   of partitions that the replica gave away are removed after a while without a call of the listeners: these objects
   still exist. If a partition returns before that, its objects count at once, or when the current reading is complete.
5. A message is damaged: its subject, headers and payload disagree. The cache keeps the object's last version, and the
   subject is in quarantine until a valid message arrives or a reading lacks it. The watcher, which compares STATE with
   the API server, provides one of the two.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable

import structlog

from dynamo_shared.aio import Pauses, either
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.bus import metrics, streams, tracing
from dynamo_shared.bus.protocol import Bus, CaughtUp, Message, Start, Subscription, SubscriptionRestarted
from dynamo_shared.leases import GainListener
from dynamo_shared.leases.rendezvous import ALL, partition_of
from dynamo_shared.state import messages
from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.state.share import Share
from dynamo_shared.state.versions import Version
from dynamo_shared.wire import subjects

MOST_QUARANTINED = 1000
"""Limit of remembered damaged subjects; further ones are only counted."""

FORGET_INTERVAL = 5.0
"""Seconds between checks for partitions that the replica has given away."""

GATHER = 0.5
"""Seconds to wait for more partitions after a gain. Several are claimed together, or as others release them."""

BYTES_AT_ONCE = 256 << 10
"""Bytes of messages that are handled before other tasks run, which takes a few milliseconds. A compressed message counts
as that many: unpacked, it may be two hundred times as large.
"""

_NO_VERSION = Version("", 0, "")

log = structlog.get_logger("dynamo.bus.state")


class _Resource:
    """Progress of reading one resource."""

    def __init__(self, resource: Resource, *, of_share: bool) -> None:
        self.resource = resource
        self.of_share = of_share
        """whether only objects of the replica's partitions are read"""
        self.marked = False
        self.complete = False
        """whether the current reading has all objects of it"""
        self.served = True
        self.unconfirmed: set[ObjectKey] = set()
        """keys that were cached when the last reading began and that it has not read since"""
        self.synced = asyncio.Event()


class StateReader:
    """Keeps `cache` equal to STATE for some resources. Run it as a task; it ends only when cancelled."""

    def __init__(
        self,
        bus: Bus,
        cluster: str,
        resources: Iterable[Resource],
        cache: ObjectCache,
        *,
        of_share: Collection[Resource] = (),
        keeps: Callable[[], frozenset[int]] = lambda: ALL,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Of the resources in `of_share`, only namespaced objects of the partitions in `keeps()` are read; see `cover`."""
        self._bus = bus
        self._cluster = cluster
        self._cache = cache
        self._resources = {each.id: _Resource(each, of_share=each in of_share) for each in resources}
        self._share = Share(keeps if of_share else lambda: ALL, clock)
        self._sleep = sleep
        self._again = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._gained: frozenset[int] = frozenset()
        """partitions that were gained and not yet reported as covered"""
        self._covered: list[GainListener] = []
        self._observers: list[Callable[[Resource], None]] = []
        self._quarantine: dict[str, str] = {}
        self._reported = ""
        self._on_quarantine: Callable[[str], None] = lambda _: None

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources that it reads."""
        return tuple(entry.resource for entry in self._resources.values())

    def on_quarantine(self, observer: Callable[[str], None]) -> None:
        """Register a callback for a sentence about the quarantine, whenever it changes; "" if it is empty."""
        self._on_quarantine = observer

    async def synced(self, waiting: Callable[[list[str]], None] = lambda _: None) -> None:
        """Return when all objects of all its resources have been read once, which requires that the watcher has listed
        them.

        Until then `waiting` is called with the ids of the remaining resources, whenever there are fewer.
        """
        for entry in self._resources.values():
            if not entry.synced.is_set():
                waiting([each.resource.id for each in self._resources.values() if not each.synced.is_set()])
                await entry.synced.wait()

    def is_synced(self, resource: Resource) -> bool:
        """Whether all objects of one resource have been read once."""
        return self._resources[resource.id].synced.is_set()

    def is_served(self, resource: Resource) -> bool:
        """Whether the cluster serves a resource, as the watcher last reported; its definition may not be installed."""
        return self._resources[resource.id].served

    def on_resync(self, observer: Callable[[Resource], None]) -> None:
        """Register a callback for a resource that was read completely: at the start, after each restart of the reading,
        and when the watcher has listed it again or has observed that it is now served, or no longer served.
        """
        self._observers.append(observer)

    def covers(self, key: ObjectKey) -> bool:
        """Whether all objects of a key's partition have been read, so that the replica may reconcile it."""
        return partition_of(key) in self._share.covered

    def unread(self) -> list[str]:
        """Ids of resources that must still be read before gained keys may be reconciled; empty if there are none."""
        if self._share.is_covered():
            return []
        return [each.resource.id for each in self._resources.values() if self._again.is_set() or not each.complete]

    def on_covered(self, observer: GainListener) -> None:
        """Register a callback for gained partitions, called once they have been read."""
        self._covered.append(observer)

    def cover(self, gained: frozenset[int]) -> None:
        """Read gained partitions. `on_covered` is called when they are read, and at once for those already read."""
        self._gained |= gained
        if not self._is_complete():
            # Another replica has worked on them, perhaps since the connection was lost.
            self._share.uncover(gained)
        if self._share.lacks():
            self._again.set()
        self._report_covered()

    async def run(self) -> None:
        """Read until cancelled."""
        await either(self._read_always(), self._forget_now_and_then())

    async def _read_always(self) -> None:
        filters = [subjects.state_filter(self._cluster, resource_id) for resource_id in self._resources]
        self._again.set()
        while self._again.is_set():
            subscription = await self._bus.subscribe(streams.STATE, filters, start=Start.LAST_PER_SUBJECT)
            self._again.clear()
            self._share.begin()
            self._begin()
            try:
                await either(self._read(subscription), self._until_next())
            finally:
                await subscription.close()

    async def _until_next(self) -> None:
        """Return when partitions that were gained during the current reading must be read."""
        await self._again.wait()
        await self._sleep(GATHER)
        if self._share.adds():
            # A restart would delay the partitions of this reading, and without end if gains come faster than a reading ends.
            await self._caught_up.wait()

    async def _read(self, subscription: Subscription) -> None:
        pauses = Pauses(BYTES_AT_ONCE)
        async for item in subscription:
            if isinstance(item, Message):
                self._take(item)
                if pauses.due(BYTES_AT_ONCE if messages.ENCODING in item.headers else len(item.payload)):
                    await asyncio.sleep(0)
            elif isinstance(item, CaughtUp):
                self._caught_up.set()
                # Subjects that were damaged before and were not read again are gone.
                self._report_quarantine()
                for entry in self._resources.values():
                    self._settle(entry)
            elif isinstance(item, SubscriptionRestarted) and not item.complete:
                self._begin()

    async def _forget_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(FORGET_INTERVAL)
            self.forget_given_away()

    def forget_given_away(self) -> None:
        """Remove objects of partitions that the replica gave away a while ago from the cache; called every few seconds."""
        if self._share.expire():
            for entry in self._resources.values():
                given_away = [key for key in self._cache.keys(entry.resource) if not self._reads(entry, key)]
                self._cache.forget(entry.resource, given_away)

    def _begin(self) -> None:
        """Start a reading of the last messages."""
        self._caught_up.clear()
        self._quarantine.clear()
        for entry in self._resources.values():
            entry.marked = entry.complete = False
            entry.unconfirmed = {key for key in self._cache.keys(entry.resource) if self._reads(entry, key)}

    def _reads(self, entry: _Resource, key: ObjectKey) -> bool:
        return not (entry.of_share and key.namespace) or partition_of(key) in self._share.reading

    def _take(self, message: Message) -> None:
        """Handle one message. It never raises: no message, whatever its content, stops the reading of the others."""
        try:
            marker = subjects.parse_synced(message.subject)
            if marker is not None:
                self._mark(self._resources[marker[1]], message)
            else:
                self._take_object(message)
        except Exception as error:
            # A tombstone also ends a subject that is not valid in STATE: this is how the watcher clears it.
            ends = messages.is_tombstone(message.headers) and not message.payload
            if not ends:
                self._isolate(message.subject, str(error) if isinstance(error, ValueError) else type(error).__name__)
                return
            log.debug("tombstone of an invalid subject", subject=message.subject[:500])
        if self._quarantine.pop(message.subject, None) is not None:
            self._report_quarantine()

    def _take_object(self, message: Message) -> None:
        _, resource_id, key = subjects.parse_state(message.subject)
        entry = self._resources[resource_id]
        if not self._reads(entry, key):
            return
        # Whether damaged or not, STATE has an object of this name.
        entry.unconfirmed.discard(key)
        version = messages.read_version(message.headers)
        if not messages.is_tombstone(message.headers) and self._cache.confirm(entry.resource, key, version):
            return
        obj = messages.read_object(entry.resource, key, message)
        content = None if messages.ENCODING in message.headers else message.payload
        with tracing.continued(message.headers):
            self._cache.take(entry.resource, key, obj, version, content=content)

    def _isolate(self, subject: str, reason: str) -> None:
        metrics.STATE_DAMAGED.inc()
        known = subject in self._quarantine
        if known or len(self._quarantine) < MOST_QUARANTINED:
            self._quarantine[subject] = reason[:200]
        if not known:
            log.warning("ignoring invalid message in STATE", subject=subject[:500], error=reason[:200])
            self._report_quarantine()

    def _report_quarantine(self) -> None:
        if (words := self._words()) != self._reported:
            self._reported = words
            self._on_quarantine(words)

    def _words(self) -> str:
        if not self._quarantine:
            return ""
        subject, reason = next(iter(self._quarantine.items()))
        count = len(self._quarantine)
        return (
            f"{count} invalid message{'s' if count > 1 else ''} in STATE ignored; the first: {subject[:200]}: {reason}"
        )

    def _mark(self, entry: _Resource, message: Message) -> None:
        marker = messages.decode_marker(message.payload)
        if marker.resource != entry.resource.id:
            raise ValueError("marker does not match the resource of its subject")
        entry.served = marker.served
        entry.marked = True
        self._settle(entry)

    def _settle(self, entry: _Resource) -> None:
        """The resource is complete when the last messages and its marker have been read."""
        if not (self._caught_up.is_set() and entry.marked):
            return
        first = not entry.synced.is_set()
        vanished, entry.unconfirmed = entry.unconfirmed, set()
        for key in vanished:
            self._cache.take(entry.resource, key, None, _NO_VERSION)
        entry.complete = True
        entry.synced.set()
        if first or vanished:
            log.debug("resource read", resource=entry.resource.id, count=self._cache.count(entry.resource))
        for observer in self._observers:
            observer(entry.resource)
        if self._is_complete():
            self._share.complete()
            self._report_covered()

    def _is_complete(self) -> bool:
        """Whether the current reading has everything."""
        return all(each.complete for each in self._resources.values())

    def _report_covered(self) -> None:
        ready = self._gained & self._share.covered
        self._gained -= ready
        if ready:
            for observer in self._covered:
                observer(ready)
