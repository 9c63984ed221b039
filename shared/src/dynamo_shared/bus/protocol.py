"""The interface of the bus, which `NatsBus` and the in-memory bus of the tests implement."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple, Protocol, Self, TypeAlias

from dynamo_shared.bus.streams import StreamSpec

ACK_TIMEOUT = 5.0
"""Seconds that a publish waits for its acknowledgement."""


class BusHealth(StrEnum):
    """Whether the bus is available now. It reconnects by itself: callers just wait."""

    CONNECTED = "connected"
    DEGRADED = "degraded"


class Ack(NamedTuple):
    """The stream has stored a message."""

    stream: str
    sequence: int
    duplicate: bool
    """The stream already had a message with this id; `sequence` is that of the first one."""


@dataclass(slots=True)
class Message:
    """One stored message."""

    subject: str
    payload: bytes
    headers: Mapping[str, str]
    sequence: int


class CaughtUp(NamedTuple):
    """All messages stored at the (re)start of the subscription have been delivered; the following ones are new."""

    incarnation: str
    """of the stream that is read, as in `StreamState`"""


class SubscriptionRestarted(NamedTuple):
    """The subscription was recreated after a lost connection, a gap or a lost stream."""

    complete: bool
    """True: the following messages continue after the last one. False: messages start from the beginning (the last one
    of each subject, or all that the stream has), and some in between may be missing.
    """
    incarnation: str
    """of the stream that is read from now on"""


Item: TypeAlias = "Message | CaughtUp | SubscriptionRestarted"


class Start(Enum):
    """Where a subscription starts."""

    LAST_PER_SUBJECT = "last_per_subject"
    """The last message of each subject, then new ones. It starts over each time the connection is restored."""
    ALL = "all"
    NEW = "new"


class Subscription(Protocol):
    """Messages of a stream in order, for one subscriber. Endless; it survives the loss of the connection."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Item: ...

    async def close(self) -> None:
        """Stop the subscription; the iteration ends."""


class Delivery(Protocol):
    """A message that requires one answer, ack, nak or reject, within its ack wait."""

    message: Message
    """The delivered message."""
    deliveries: int
    """How many times it was delivered, including this time."""

    async def ack(self) -> None:
        """Acknowledge. Raises BusUnavailableError if the server does not confirm; the message is then delivered again."""

    async def nak(self, delay: float = 0.0) -> None:
        """Request another delivery after `delay` seconds."""

    async def reject(self) -> None:
        """Request that it is never delivered again."""

    async def in_progress(self) -> None:
        """Report progress: the ack wait restarts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSpec:
    """A durable consumer: its deliveries are shared among all clients that open it under the same name."""

    stream: StreamSpec
    name: str
    subjects: tuple[str, ...]
    ack_wait: float = 30.0
    max_deliver: int = 5
    max_unacknowledged: int = 256


class Consumer(Protocol):
    """Deliveries of a durable consumer. Endless; it survives the loss of the connection."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Delivery: ...

    async def close(self) -> None:
        """Stop receiving; the durable consumer stays on the server. The iteration ends."""


class StreamState(NamedTuple):
    """State of a stream."""

    incarnation: str
    """Changes if the stream is lost and recreated."""
    messages: int
    first_sequence: int
    last_sequence: int


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message for a stream to store.

    `msg_id`: a second message with the same id within the stream's duplicate window is not stored again.
    `expected_last_subject_sequence`: store it only if the subject's last message has this sequence (0: no message).
    `ttl`: seconds after which the stream drops it (streams with `message_ttl` only); 0 keeps it.
    """

    subject: str
    payload: bytes
    headers: Mapping[str, str] | None = None
    msg_id: str = ""
    expected_last_subject_sequence: int | None = None
    ttl: float = 0.0


class Bus(Protocol):
    """Publishes to and reads from the streams. Safe to use from any task of one event loop."""

    @property
    def health(self) -> BusHealth:
        """Whether the server is available now."""

    @property
    def trouble(self) -> str:
        """Why the server is unavailable, without secrets; "" if it is available."""

    def on_health(self, listener: Callable[[BusHealth], None]) -> Callable[[], None]:
        """Register a listener for each change of health; call the returned function to remove it."""

    async def wait_connected(self) -> None:
        """Return as soon as the server is available."""

    async def declare(self, *streams: StreamSpec) -> None:
        """Create missing streams and update those that differ; never delete one."""

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        msg_id: str = "",
        expected_last_subject_sequence: int | None = None,
        ttl: float = 0.0,
        timeout: float = ACK_TIMEOUT,
    ) -> Ack:
        """Store a message and wait until it is stored. The parameters are the fields of `OutgoingMessage`.

        Raises WrongSequenceError, StreamNotFoundError, StreamFullError, MessageTooLargeError, BusUnavailableError.
        """
        message = OutgoingMessage(subject, payload, headers, msg_id, expected_last_subject_sequence, ttl)
        return await (await self.send(message, timeout=timeout))

    async def send(self, message: OutgoingMessage, *, timeout: float = ACK_TIMEOUT) -> asyncio.Future[Ack]:
        """Like `publish`, but return once the message is sent: the future has the ack, or publish's error."""
        ...

    async def last_message(self, stream: StreamSpec, subject: str) -> Message | None:
        """The last message of a subject according to the stream's leader, or None."""

    async def stream_state(self, stream: StreamSpec) -> StreamState:
        """State of the stream; StreamNotFoundError if it does not exist."""

    async def subscribe(
        self, stream: StreamSpec, filters: Sequence[str], *, start: Start, headers_only: bool = False
    ) -> Subscription:
        """Subscribe to messages whose subject matches one of the filters.

        Returns when the subscription exists, or at once if the bus is degraded (it is then created as soon as
        possible).
        """

    async def consume(self, spec: ConsumerSpec, *, prefetch: int = 16) -> Consumer:
        """Deliveries of a durable consumer, which is created if it is missing; at most `prefetch` wait in this process."""

    async def read(self, stream: StreamSpec, sequence: int) -> Message | None:
        """The message with a sequence number, None if it was removed."""

    async def remove(self, stream: StreamSpec, sequence: int) -> None:
        """Remove one message from a stream, if it still exists."""

    async def close(self) -> None:
        """Stop everything. Publishes that wait for their ack raise BusClosedError."""
