"""Fills an object cache from STATE and keeps it so, whatever happens to the connection or to the stream.

What can happen, and what the reader does:

1. It starts: it reads the last message of each subject. A resource is synced once these are read and the watcher's
   marker for the resource is among them, or has come since.
2. The connection was lost, a message is missing, or the stream was lost and made anew: it reads the last messages
   again. What the cache has and the second reading lacks is gone, but that is believed only when the resource's marker
   has been seen again: a stream that was made anew is empty until the watcher has refilled it.
3. NATS is away: the cache stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog
from opentelemetry import context

from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.bus import state, streams, subjects, tracing
from dynamo_shared.bus.cache import ObjectCache
from dynamo_shared.bus.protocol import Bus, CaughtUp, Message, Restarted, Start
from dynamo_shared.bus.versions import is_newer

log = structlog.get_logger("dynamo.bus.state")


class _Resource:
    """How far the reading of one resource is."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.marked = False
        self.served = True
        self.unconfirmed: set[ObjectKey] = set()
        """keys that the cache had when the last reading began and that it has not met since"""
        self.synced = asyncio.Event()


class StateReader:
    """Keeps `cache` equal to STATE for some resources. Run it as a task; it ends only by cancellation."""

    def __init__(self, bus: Bus, cluster: str, resources: Iterable[Resource], cache: ObjectCache) -> None:
        self._bus = bus
        self._cluster = cluster
        self._cache = cache
        self._resources = {resource.id: _Resource(resource) for resource in resources}
        self._caught_up = False
        self._observers: list[Callable[[Resource], None]] = []

    async def synced(self) -> None:
        """Returns when all objects of all its resources have been read once; the watcher must have listed them."""
        for entry in self._resources.values():
            await entry.synced.wait()

    def is_synced(self, resource: Resource) -> bool:
        """Whether all objects of one resource have been read once."""
        return self._resources[resource.id].synced.is_set()

    def is_served(self, resource: Resource) -> bool:
        """Whether the cluster has a resource at all, as the watcher found last; its definition may not be installed."""
        return self._resources[resource.id].served

    def on_resync(self, observer: Callable[[Resource], None]) -> None:
        """Calls back when a resource has been read completely: at the start, after each restart of the reading, and
        when the watcher has listed it again or has found that it is served, or no longer.
        """
        self._observers.append(observer)

    async def run(self) -> None:
        """Reads for ever."""
        filters = [subjects.state_filter(self._cluster, resource_id) for resource_id in self._resources]
        subscription = await self._bus.subscribe(streams.STATE, filters, start=Start.LAST_PER_SUBJECT)
        self._begin()
        try:
            async for item in subscription:
                if isinstance(item, Message):
                    self._take(item)
                elif isinstance(item, CaughtUp):
                    self._caught_up = True
                    for entry in self._resources.values():
                        self._settle(entry)
                elif isinstance(item, Restarted) and not item.complete:
                    self._begin()
        finally:
            await subscription.close()

    def _begin(self) -> None:
        """A reading from the last values begins."""
        self._caught_up = False
        for entry in self._resources.values():
            entry.marked = False
            entry.unconfirmed = self._cache.keys(entry.resource)

    def _take(self, message: Message) -> None:
        marker = subjects.parse_synced(message.subject)
        if marker is not None:
            self._mark(self._resources[marker[1]], message)
            return
        try:
            _, resource_id, key = subjects.parse_state(message.subject)
            entry = self._resources[resource_id]
            with tracing.continued(message.headers):
                self._apply(entry, key, message)
        except (ValueError, KeyError, TypeError) as error:
            # A foreign or damaged message must not stop the reading of all others.
            log.warning("unreadable STATE message", subject=message.subject, error=str(error))

    def _mark(self, entry: _Resource, message: Message) -> None:
        try:
            entry.served = state.decode_marker(message.payload).served
        except ValueError as error:
            log.warning("unreadable marker in STATE", subject=message.subject, error=str(error))
        entry.marked = True
        self._settle(entry)

    def _apply(self, entry: _Resource, key: ObjectKey, message: Message) -> None:
        """Brings the cache in line. Its listeners are called within the trace that the message belongs to."""
        if tracing.TRACEPARENT not in message.headers:
            self._write(entry, key, message)
            return
        token = context.attach(tracing.extract(message.headers))
        try:
            self._write(entry, key, message)
        finally:
            context.detach(token)

    def _write(self, entry: _Resource, key: ObjectKey, message: Message) -> None:
        entry.unconfirmed.discard(key)
        version = state.version_in(message.headers)
        if state.is_tombstone(message.headers):
            self._cache.remove(entry.resource, key, version.uid, version.resource_version)
            return
        held = self._cache.version(entry.resource, key)
        if held is None or is_newer(version, held):
            self._cache.put(entry.resource, state.decode_object(message.payload))

    def _settle(self, entry: _Resource) -> None:
        """The resource is complete when both the last values and its marker have been read."""
        if not (self._caught_up and entry.marked):
            return
        first = not entry.synced.is_set()
        vanished, entry.unconfirmed = entry.unconfirmed, set()
        for key in vanished:
            self._cache.remove(entry.resource, key)
        entry.synced.set()
        if first or vanished:
            log.debug("resource read", resource=entry.resource.id, count=self._cache.count(entry.resource))
        for observer in self._observers:
            observer(entry.resource)
