"""The bus over NATS JetStream: combines the session keeper, publishing, reading and consuming."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from dynamo_shared.bus import metrics
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.nats import management
from dynamo_shared.bus.nats.consumer import NatsConsumer
from dynamo_shared.bus.nats.keeper import Keeper
from dynamo_shared.bus.nats.options import NatsOptions
from dynamo_shared.bus.nats.subscription import NatsSubscription
from dynamo_shared.bus.protocol import (
    ACK_TIMEOUT,
    Ack,
    Bus,
    BusHealth,
    ConsumerSpec,
    Message,
    OutgoingMessage,
    Start,
    StreamState,
)
from dynamo_shared.bus.streams import StreamSpec

MSG_ID = "Nats-Msg-Id"
EXPECTED_LAST_SUBJECT_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
TTL = "Nats-TTL"


class NatsBus(Bus):
    """See `Bus` in `protocol`."""

    def __init__(self, options: NatsOptions) -> None:
        self._options = options
        self._keeper = Keeper(options)

    @classmethod
    async def connect(cls, options: NatsOptions | None = None, *, wait: float = 5.0, **settings: Any) -> Self:
        """Create a bus that connects and stays connected; `settings` are the fields of `NatsOptions`.

        Waits at most `wait` seconds for the first connection. Without a connection it returns with degraded health and
        continues to try: services also start while NATS is unavailable. BusOptionsError if the options cannot work.
        """
        bus = cls(options or NatsOptions(**settings))
        bus._keeper.start()
        try:
            async with asyncio.timeout(wait):
                await bus.wait_connected()
        except TimeoutError:
            metrics.CONNECTED.set(0)
        except BaseException:
            await bus.close()
            raise
        return bus

    @property
    def health(self) -> BusHealth:
        """Whether the server is available now."""
        return self._keeper.health

    @property
    def trouble(self) -> str:
        """Why the server is unavailable; "" if it is available."""
        return self._keeper.trouble

    def on_health(self, listener: Callable[[BusHealth], None]) -> Callable[[], None]:
        """Register a listener for each change of health; call the returned function to remove it."""
        return self._keeper.on_health(listener)

    async def wait_connected(self) -> None:
        """Return as soon as the server is available."""
        await self._keeper.wait_session()

    async def declare(self, *streams: StreamSpec) -> None:
        """Create missing streams and update those that differ."""
        for spec in streams:
            await self._declare(spec)

    async def send(self, message: OutgoingMessage, *, timeout: float = ACK_TIMEOUT) -> asyncio.Future[Ack]:
        """Send a message; the future is its acknowledgement."""
        headers = dict(message.headers or {})
        if message.msg_id:
            headers[MSG_ID] = message.msg_id
        if message.expected_last_subject_sequence is not None:
            headers[EXPECTED_LAST_SUBJECT_SEQUENCE] = str(message.expected_last_subject_sequence)
        if message.ttl:
            headers[TTL] = f"{max(1, round(message.ttl))}s"
        return await self._keeper.session().send(message.subject, message.payload, headers, timeout)

    async def last_message(self, stream: StreamSpec, subject: str) -> Message | None:
        """The last message of a subject."""
        return await management.stored(self._keeper.session(), stream, subject=subject)

    async def stream_state(self, stream: StreamSpec) -> StreamState:
        """State of the stream."""
        return await management.state(self._keeper.session(), stream)

    async def read(self, stream: StreamSpec, sequence: int) -> Message | None:
        """The message with a sequence number."""
        return await management.stored(self._keeper.session(), stream, seq=sequence)

    async def remove(self, stream: StreamSpec, sequence: int) -> None:
        """Remove one message from a stream."""
        await management.remove(self._keeper.session(), stream, sequence)

    async def subscribe(
        self, stream: StreamSpec, filters: Sequence[str], *, start: Start, headers_only: bool = False
    ) -> NatsSubscription:
        """Messages whose subject matches one of the filters."""
        subscription = NatsSubscription(
            self._keeper, self._declare, stream, filters, start=start, headers_only=headers_only
        )
        # If this fails now, the first read creates the subscription.
        with suppress(BusUnavailableError):
            await subscription.establish()
        return subscription

    async def consume(self, spec: ConsumerSpec, *, prefetch: int = 16) -> NatsConsumer:
        """Deliveries of a durable consumer."""
        consumer = NatsConsumer(self._keeper, self._declare, spec, prefetch)
        with suppress(BusUnavailableError):
            await consumer.establish()
        return consumer

    async def close(self) -> None:
        """Stop everything."""
        await self._keeper.close()

    async def _declare(self, spec: StreamSpec) -> None:
        await management.declare(self._keeper.session(), spec, self._options.replicas, self._options.first_member)
