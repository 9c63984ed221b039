"""Reads STATE once for all callers of a replica, and passes changes to their streams.

A reader resumes a stream with the id of its last event: sequence and incarnation of the NATS stream. The missed changes
are those with a higher sequence, because STATE keeps the last message of each object. If they cannot be known (another
incarnation, forgotten deletions), or if a reader is too slow, the stream sends `resync` and ends.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog
from dynamo_shared.api.resources import Resource
from dynamo_shared.bus import Bus, streams
from dynamo_shared.bus.protocol import CaughtUp, Message, Start, SubscriptionRestarted
from dynamo_shared.state import messages
from dynamo_shared.wire import subjects

from dynamo_dynadmin.state.entries import Entries, StoredObject
from dynamo_dynadmin.state.position import Position, incarnation_of

#: Changes that may wait for a slow reader before it must begin again.
WAITING = 1000
#: Bytes of these changes.
WAITING_BYTES = 8 << 20

log = structlog.get_logger("dynamo.dynadmin.state")


class Resync(Exception):
    """The missed changes are not known: list again."""


@dataclass(eq=False)
class Reader:
    """The subscription of one stream to a hub."""

    resource: Resource
    namespace: str
    signal: asyncio.Event = field(default_factory=asyncio.Event)
    lost: bool = False
    _waiting: list[StoredObject] = field(default_factory=list)
    _bytes: int = 0

    def offer(self, entry: StoredObject) -> None:
        """Queue a change for the reader."""
        self._waiting.append(entry)
        self._bytes += len(entry.payload) + len(entry.last)
        if self.lost or len(self._waiting) > WAITING or self._bytes > WAITING_BYTES:
            self.lose()
        self.signal.set()

    def taken(self) -> list[StoredObject]:
        """Take the queued changes."""
        taken, self._waiting, self._bytes = self._waiting, [], 0
        return taken

    def lose(self) -> None:
        """Drop the queued changes: the reader must begin again."""
        self.lost = True
        self.taken()
        self.signal.set()


class Hub:
    """Run it as a task; it ends only by cancellation."""

    def __init__(self, bus: Bus, cluster: str, resources: Iterable[Resource]) -> None:
        self._bus = bus
        self._cluster = cluster
        self.resources = {resource.id: resource for resource in resources}
        self._entries = {identifier: Entries() for identifier in self.resources}
        self._readers: dict[tuple[str, str], set[Reader]] = defaultdict(set)
        self._caught_up = False
        self._last = 0
        self._stream = ""
        self._eras = 0
        self.incarnation = ""
        """incarnation of positions: the stream, and how often silent deletions were forgotten"""
        self.ready = asyncio.Event()

    def entries(self, resource: Resource) -> Entries:
        """The objects of a resource."""
        return self._entries[resource.id]

    def position(self) -> Position:
        """The current position in the stream."""
        return Position(self._last, self.incarnation)

    def resume(self, resource: Resource, namespace: str, position: Position) -> list[StoredObject]:
        """Changes since a position. Raises Resync if they are not known."""
        entries = self._entries[resource.id]
        known = position.incarnation == self.incarnation and position.sequence <= self._last
        if not known or position.sequence < entries.forgotten or not entries.synced:
            raise Resync
        return entries.since(namespace, position.sequence)

    @contextmanager
    def reading(self, resource: Resource, namespace: str) -> Iterator[Reader]:
        """A reader of a namespace's changes from this moment."""
        reader = Reader(resource, namespace)
        place = (resource.id, namespace)
        self._readers[place].add(reader)
        try:
            yield reader
        finally:
            self._readers[place].discard(reader)
            if not self._readers[place]:
                del self._readers[place]

    async def run(self) -> None:
        """Read until cancelled."""
        filters = [subjects.state_filter(self._cluster, identifier) for identifier in self.resources]
        subscription = await self._bus.subscribe(streams.STATE, filters, start=Start.LAST_PER_SUBJECT)
        self._begin()
        try:
            async for item in subscription:
                if isinstance(item, Message):
                    self._take(item)
                elif isinstance(item, CaughtUp):
                    self._caught_up = True
                    self._identify(item.incarnation)
                    for identifier in self.resources:
                        self._settle(identifier)
                elif isinstance(item, SubscriptionRestarted) and not item.complete:
                    self._begin()
                    if not self.incarnation:
                        # The messages so far may be of a lost stream.
                        self._forget_positions()
                    self._identify(item.incarnation)
        finally:
            await subscription.close()

    def _begin(self) -> None:
        """Begin to read from the last values, of the same stream or of another one."""
        self._caught_up = False
        for entries in self._entries.values():
            entries.marked = False
            entries.unconfirmed = entries.keys()

    def _identify(self, incarnation: str) -> None:
        """Record which stream is read: positions are valid for one stream only."""
        token = incarnation_of(incarnation)
        if token == self._stream:
            return
        if self._stream:
            self._forget_positions()
            for readers in self._readers.values():
                for reader in readers:
                    reader.lose()
        self._stream = self.incarnation = token

    def _forget_positions(self) -> None:
        self._last = 0
        for entries in self._entries.values():
            entries.forget_deletions()

    def _take(self, message: Message) -> None:
        self._last = max(self._last, message.sequence)
        try:
            marker = subjects.parse_synced(message.subject)
            if marker is not None:
                entries = self._entries[marker[1]]
                entries.served = messages.decode_marker(message.payload).served
                entries.marked = True
                self._settle(marker[1])
                return
            _, identifier, key = subjects.parse_state(message.subject)
            entries = self._entries[identifier]
            entries.unconfirmed.discard(key)
            version, obj = messages.read(self.resources[identifier], key, message)
            payload = b"" if obj is None else messages.unpack(message.payload, message.headers)
            changed = entries.take(key, message.sequence, version, payload)
        except (ValueError, KeyError, TypeError) as error:
            log.warning("unreadable STATE message", subject=message.subject, error=str(error))
            return
        self._offer(identifier, changed)

    def _offer(self, identifier: str, changed: StoredObject | None) -> None:
        """Offer a change to the open streams; readers that return may have to begin again."""
        if changed is not None:
            changed.incarnation = self.incarnation
            for reader in self._readers.get((identifier, changed.key.namespace), ()):
                reader.offer(changed)
        entries = self._entries[identifier]
        if entries.forgot_silent:
            # A sequence does not show which readers have the deletion, and a higher one may never come: all earlier
            # positions become invalid.
            entries.forget_silent()
            self._eras += 1
            self.incarnation = f"{self._stream}.{self._eras}"

    def _settle(self, identifier: str) -> None:
        """A resource is complete when both its last values and its marker have been read."""
        entries = self._entries[identifier]
        if not (self._caught_up and entries.marked):
            return
        vanished, entries.unconfirmed = entries.unconfirmed, set()
        for key in vanished:
            if (gone := entries.drop(key, self._last)) is not None:
                self._offer(identifier, gone)
        entries.synced = True
        if all(each.synced for each in self._entries.values()):
            self.ready.set()


async def changes(reader: Reader, timeout: Callable[[], float]) -> AsyncIterator[list[StoredObject]]:
    """Yields changes as they come; an empty list after `timeout()` seconds of silence.

    One timer serves many waits: hundreds of streams wake with each change, and new timers would take most of their
    time. Raises Resync if the reader was too slow, or the stream was replaced.
    """
    loop, rung = asyncio.get_running_loop(), False

    def ring() -> None:
        nonlocal rung
        rung = True
        reader.signal.set()

    due = loop.time() + timeout()
    alarm = loop.call_at(due, ring)
    try:
        while True:
            await reader.signal.wait()
            reader.signal.clear()
            if reader.lost:
                raise Resync
            batch = reader.taken()
            if batch or loop.time() >= due:
                yield batch
                due = loop.time() + timeout()
            if rung or alarm.when() > due:
                alarm.cancel()
                alarm, rung = loop.call_at(due, ring), False
    finally:
        alarm.cancel()
