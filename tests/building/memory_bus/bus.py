"""`MemoryBus`: the platform's streams in one process, with failures of a real server on request."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Generic, Self, TypeVar

from dynamo_shared.bus.errors import BusClosedError, BusError, BusUnavailableError, StreamNotFoundError
from dynamo_shared.bus.protocol import (
    ACK_TIMEOUT,
    Ack,
    Bus,
    BusHealth,
    CaughtUp,
    ConsumerSpec,
    Item,
    Message,
    OutgoingMessage,
    Start,
    StreamState,
    SubscriptionRestarted,
)
from dynamo_shared.bus.sizes import check_size
from dynamo_shared.bus.streams import StreamSpec

from tests.building.memory_bus.consumer import MemoryConsumer, MemoryDelivery
from tests.building.memory_bus.store import MemoryStream, matches_any

T = TypeVar("T")
ADVISORY = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES"


class MemoryBus(Bus):
    """See `Bus` of the protocol. `clock` gives seconds that only grow; the event loop's by default.

    `disconnect`, `reconnect` and `lose_data` simulate a server that goes away, comes back, or comes back empty.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._streams: dict[str, MemoryStream] = {}
        self._consumers: dict[tuple[str, str], MemoryConsumer] = {}
        self._listeners: list[Callable[[BusHealth], None]] = []
        self._connected = asyncio.Event()
        self._connected.set()
        self._changed = asyncio.Event()
        self._closed = False
        self.epoch = 0

    @property
    def health(self) -> BusHealth:
        """Connected unless `disconnect` was called."""
        return BusHealth.CONNECTED if self._connected.is_set() else BusHealth.DEGRADED

    @property
    def trouble(self) -> str:
        """Why the server cannot be reached."""
        return "" if self._connected.is_set() else "disconnected"

    def on_health(self, listener: Callable[[BusHealth], None]) -> Callable[[], None]:
        """Calls back at each change of health, until the function that this returns is called."""
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)

    async def wait_connected(self) -> None:
        """Returns as soon as the server can be reached."""
        await self._connected.wait()
        if self._closed:
            raise BusClosedError("the bus is closed")

    def disconnect(self) -> None:
        """From now on the server cannot be reached."""
        self._connected.clear()
        self._notify(BusHealth.DEGRADED)

    def reconnect(self) -> None:
        """The server can be reached again; subscriptions are recreated, as after a real reconnection."""
        self.epoch += 1
        self._connected.set()
        self.notify()
        self._notify(BusHealth.CONNECTED)

    def lose_data(self) -> None:
        """Drops all streams and consumers, like a server that restarts without its disk."""
        self._streams.clear()
        self._consumers.clear()

    async def declare(self, *streams: StreamSpec) -> None:
        """Creates streams that are missing."""
        self.check()
        for spec in streams:
            if spec.name not in self._streams:
                self._streams[spec.name] = MemoryStream(spec, self._clock)
            self._streams[spec.name].spec = spec

    async def send(self, message: OutgoingMessage, *, timeout: float = ACK_TIMEOUT) -> asyncio.Future[Ack]:
        """Stores a message; the future has the answer already."""
        self.check()
        check_size(message.subject, message.payload, message.headers)
        future: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(self._stream_of(message.subject).publish(message))
            self.notify()
        except BusError as error:
            future.set_exception(error)
        return future

    async def last_message(self, stream: StreamSpec, subject: str) -> Message | None:
        """The last message of a subject."""
        store = self.stream(stream)
        store.expire()
        return store.get(store.last_of(subject))

    async def stream_state(self, stream: StreamSpec) -> StreamState:
        """What the stream holds."""
        return self.stream(stream).state()

    async def read(self, stream: StreamSpec, sequence: int) -> Message | None:
        """The message of a sequence number."""
        return self.stream(stream).get(sequence)

    async def remove(self, stream: StreamSpec, sequence: int) -> None:
        """Takes one message out of a stream."""
        self.stream(stream).remove(sequence)

    async def subscribe(
        self, stream: StreamSpec, filters: Sequence[str], *, start: Start, headers_only: bool = False
    ) -> MemorySubscription:
        """Messages whose subject matches one of the filters."""
        subscription = MemorySubscription(self, stream, tuple(filters), start=start, headers_only=headers_only)
        if self._connected.is_set():
            await subscription.establish()
        return subscription

    async def consume(self, spec: ConsumerSpec, *, prefetch: int = 16) -> MemoryConsumption:
        """Deliveries of a durable consumer; nothing is fetched ahead in memory."""
        if self._connected.is_set():
            await self.consumer(spec)
        return MemoryConsumption(self, spec)

    async def consumer(self, spec: ConsumerSpec) -> MemoryConsumer:
        """State of a durable consumer, created if it is missing."""
        await self.declare(spec.stream)
        key = (spec.stream.name, spec.name)
        if key not in self._consumers:

            def give_up(sequence: int, deliveries: int) -> None:
                self._advise(spec, sequence, deliveries)

            self._consumers[key] = MemoryConsumer(spec, self.stream(spec.stream), self._clock, give_up)
        return self._consumers[key]

    async def close(self) -> None:
        """Ends all subscriptions."""
        self._closed = True
        self._connected.set()
        self.notify()

    def check(self) -> None:
        """Raises if the server cannot be reached."""
        if self._closed:
            raise BusClosedError("the bus is closed")
        if not self._connected.is_set():
            raise BusUnavailableError("disconnected")

    def stream(self, spec: StreamSpec) -> MemoryStream:
        """A stream's store."""
        self.check()
        if spec.name not in self._streams:
            raise StreamNotFoundError(f"stream {spec.name} does not exist")
        return self._streams[spec.name]

    def notify(self) -> None:
        """Wakes all tasks that wait for a change."""
        event, self._changed = self._changed, asyncio.Event()
        event.set()
        for consumer in self._consumers.values():
            consumer.changed.set()

    async def changed(self) -> None:
        """Returns at the next change of anything."""
        await self._changed.wait()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def _stream_of(self, subject: str) -> MemoryStream:
        for store in self._streams.values():
            if matches_any(store.spec.subjects, subject):
                return store
        raise StreamNotFoundError("no stream has this subject")

    def _advise(self, spec: ConsumerSpec, sequence: int, deliveries: int) -> None:
        """Publishes an advisory about the last delivery if a stream has its subject, as the server does."""
        advisory = {
            "type": "io.nats.jetstream.advisory.v1.max_deliver",
            "stream": spec.stream.name,
            "consumer": spec.name,
            "stream_seq": sequence,
            "deliveries": deliveries,
        }
        subject = f"{ADVISORY}.{spec.stream.name}.{spec.name}"
        try:
            store = self._stream_of(subject)
        except StreamNotFoundError:
            return
        store.publish(OutgoingMessage(subject, json.dumps(advisory).encode()))
        self.notify()

    def _notify(self, health: BusHealth) -> None:
        for listener in list(self._listeners):
            listener(health)


class _MemoryReader(ABC, Generic[T]):
    """What subscriptions and consumers share: they wait while the server is away, until the bus is closed."""

    def __init__(self, bus: MemoryBus) -> None:
        self._bus = bus
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        # Like a real connection, it lets other tasks run.
        await asyncio.sleep(0)
        while not (self._closed or self._bus.closed):
            if self._bus.health is BusHealth.DEGRADED:
                await self._bus.wait_connected()
            elif (item := await self._next()) is not None:
                return item
        raise StopAsyncIteration

    @abstractmethod
    async def _next(self) -> T | None:
        """The next item; None after a wait: then it is called again."""

    async def close(self) -> None:
        """Stops it."""
        self._closed = True
        self._bus.notify()


class MemorySubscription(_MemoryReader[Item]):
    """See `Subscription` of the protocol."""

    def __init__(
        self, bus: MemoryBus, stream: StreamSpec, filters: tuple[str, ...], *, start: Start, headers_only: bool
    ) -> None:
        super().__init__(bus)
        self._stream = stream
        self._filters = filters
        self._start = start
        self._headers_only = headers_only
        self._epoch = -1
        self._incarnation = ""
        self._position = 0
        self._catch_up_at = 0
        self._only_last = False
        self._awaited: set[str] = set()
        self._signs: deque[CaughtUp | SubscriptionRestarted] = deque()
        self._caught_up = False

    async def _next(self) -> Item | None:
        if self._epoch != self._bus.epoch:
            await self.establish()
        if self._signs:
            return self._signs.popleft()
        message = self._stored(self._bus.stream(self._stream))
        if message is not None:
            return message
        if not self._caught_up:
            self._caught_up = True
            return CaughtUp(self._incarnation)
        await self._bus.changed()
        return None

    async def establish(self) -> None:
        """Starts or continues reading."""
        await self._bus.declare(self._stream)
        state = self._bus.stream(self._stream).state()
        again = bool(self._incarnation)
        same = state.incarnation == self._incarnation and state.last_sequence >= self._position
        complete = False
        if self._start is Start.NEW and not again:
            self._position = state.last_sequence
        elif self._start is not Start.LAST_PER_SUBJECT and again and same:
            complete = self._position + 1 >= state.first_sequence
        else:
            self._position = 0
        self._only_last = self._start is Start.LAST_PER_SUBJECT
        self._epoch, self._incarnation = self._bus.epoch, state.incarnation
        self._catch_up_at, self._caught_up = state.last_sequence, False
        stored = self._bus.stream(self._stream).after(0) if self._only_last else ()
        # A value that is replaced meanwhile is read later.
        self._awaited = {each.subject for each in stored if matches_any(self._filters, each.subject)}
        self._signs.clear()
        if again:
            self._signs.append(SubscriptionRestarted(complete, self._incarnation))

    def _stored(self, store: MemoryStream) -> Message | None:
        for message in store.after(self._position):
            if not (self._caught_up or self._awaited) and message.sequence > self._catch_up_at:
                return None
            self._position = message.sequence
            if not matches_any(self._filters, message.subject):
                continue
            old = message.sequence <= self._catch_up_at
            if self._only_last and old and store.last_of(message.subject) != message.sequence:
                continue
            self._awaited.discard(message.subject)
            if self._headers_only:
                return Message(message.subject, b"", message.headers, message.sequence)
            return message
        return None


class MemoryConsumption(_MemoryReader[MemoryDelivery]):
    """See `Consumer` of the protocol."""

    def __init__(self, bus: MemoryBus, spec: ConsumerSpec) -> None:
        super().__init__(bus)
        self._spec = spec

    async def _next(self) -> MemoryDelivery | None:
        consumer = await self._bus.consumer(self._spec)
        consumer.changed.clear()
        taken = consumer.take()
        if taken is not None:
            return MemoryDelivery(consumer, *taken, self._bus.check)
        with suppress(TimeoutError):
            async with asyncio.timeout(consumer.next_due()):
                await consumer.changed.wait()
        return None
