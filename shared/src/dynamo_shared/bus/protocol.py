"""What a bus can do, whatever carries it: the interface of `NatsBus`, and of the bus in memory that tests use."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple, Protocol, Self, TypeAlias

from dynamo_shared.bus.streams import StreamSpec

ACK_TIMEOUT = 5.0
"""Seconds that a publish waits for its acknowledgement."""


class BusHealth(StrEnum):
    """Whether the bus can be reached now. It comes back by itself: just wait."""

    CONNECTED = "connected"
    DEGRADED = "degraded"


class Ack(NamedTuple):
    """The stream has stored a message."""

    stream: str
    sequence: int
    duplicate: bool
    """The stream had it already under the same message id; `sequence` is that of the first one."""


@dataclass(slots=True)
class Message:
    """One stored message."""

    subject: str
    payload: bytes
    headers: Mapping[str, str]
    sequence: int


class CaughtUp(NamedTuple):
    """All that was stored when the subscription (re)started has been delivered; what follows is new."""

    incarnation: str
    """Of the stream that is read, as `StreamState` has it."""


class SubscriptionRestarted(NamedTuple):
    """The subscription was recreated after a lost connection, a gap or a lost stream."""

    complete: bool
    """True: what follows goes on where the last message was. False: what follows are the messages from the beginning
    (the last one of each subject, or all that the stream has), and what came between may be missing."""
    incarnation: str
    """Of the stream that is read from now on."""


Item: TypeAlias = "Message | CaughtUp | SubscriptionRestarted"


class Start(Enum):
    """From where on a subscription gets messages."""

    LAST_PER_SUBJECT = "last_per_subject"
    """The last message of each subject, then new ones. Starts over so each time the connection comes back."""
    ALL = "all"
    NEW = "new"


class Subscription(Protocol):
    """Messages of a stream in order, for one subscriber. Endless; survives the loss of the connection by itself."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Item: ...

    async def close(self) -> None:
        """Stops it; the iteration ends."""


class Delivery(Protocol):
    """A message that wants an answer: one of ack, nak and reject, before its ack wait is over."""

    message: Message
    """What was delivered."""
    deliveries: int
    """How many times it was delivered, this one included."""

    async def ack(self) -> None:
        """Done. Raises BusUnavailableError where the server does not confirm; it is then delivered again."""

    async def nak(self, delay: float = 0.0) -> None:
        """Again, after so many seconds."""

    async def reject(self) -> None:
        """Never again."""

    async def in_progress(self) -> None:
        """Still at it: the ack wait begins again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSpec:
    """A durable consumer: its deliveries are shared among all who open it under the same name."""

    stream: StreamSpec
    name: str
    subjects: tuple[str, ...]
    ack_wait: float = 30.0
    max_deliver: int = 5
    max_unacknowledged: int = 256


class Consumer(Protocol):
    """Deliveries of a durable consumer. Endless; survives the loss of the connection by itself."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Delivery: ...

    async def close(self) -> None:
        """Stops receiving; the durable consumer stays on the server. The iteration ends."""


class StreamState(NamedTuple):
    """What a stream holds."""

    incarnation: str
    """Changes when the stream was lost and recreated."""
    messages: int
    first_sequence: int
    last_sequence: int


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message that a stream shall store.

    `msg_id`: a second message under the same id within the stream's duplicate window is not stored again.
    `expected_last_subject_sequence`: store it only if that is the sequence of the subject's last message (0: none).
    `ttl`: seconds after which the stream drops it (streams with `message_ttl` only); 0 keeps it.
    """

    subject: str
    payload: bytes
    headers: Mapping[str, str] | None = None
    msg_id: str = ""
    expected_last_subject_sequence: int | None = None
    ttl: float = 0.0


class Bus(Protocol):
    """Publishing to and reading from the streams. Safe to use from any task of one event loop."""

    @property
    def health(self) -> BusHealth:
        """Whether the server can be reached now."""

    @property
    def trouble(self) -> str:
        """Why the server cannot be reached, in words without secrets; empty while it can."""

    def on_health(self, listener: Callable[[BusHealth], None]) -> Callable[[], None]:
        """Calls back at each change of health, until the function that this returns is called."""

    async def wait_connected(self) -> None:
        """Returns as soon as the server can be reached."""

    async def declare(self, *streams: StreamSpec) -> None:
        """Makes streams that are missing and brings those that differ in line; never deletes one."""

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
        """Stores a message and waits until it is stored. The fields are those of `OutgoingMessage`.

        Raises WrongSequenceError, StreamNotFoundError, StreamFullError, MessageTooLargeError, BusUnavailableError.
        """
        message = OutgoingMessage(subject, payload, headers, msg_id, expected_last_subject_sequence, ttl)
        return await (await self.send(message, timeout=timeout))

    async def send(self, message: OutgoingMessage, *, timeout: float = ACK_TIMEOUT) -> asyncio.Future[Ack]:
        """As `publish`, but returns when the message is on its way: the future has the ack, or publish's error."""
        ...

    async def last_message(self, stream: StreamSpec, subject: str) -> Message | None:
        """The last message of a subject, as the stream's leader has it, or None."""

    async def stream_state(self, stream: StreamSpec) -> StreamState:
        """What the stream holds; StreamNotFoundError where it does not exist."""

    async def subscribe(
        self, stream: StreamSpec, filters: Sequence[str], *, start: Start, headers_only: bool = False
    ) -> Subscription:
        """Messages whose subject matches one of the filters.

        Returns when the subscription stands, or at once while the bus is degraded (it then stands as soon as it can).
        """

    async def consume(self, spec: ConsumerSpec, *, prefetch: int = 16) -> Consumer:
        """Deliveries of a durable consumer, which is made if it is missing; at most `prefetch` wait in this process."""

    async def read(self, stream: StreamSpec, sequence: int) -> Message | None:
        """The message of a sequence number, None where it is gone."""

    async def remove(self, stream: StreamSpec, sequence: int) -> None:
        """Takes one message out of a stream; nothing happens where it is gone already."""

    async def close(self) -> None:
        """Stops everything. Publishes that wait for their ack raise BusClosedError."""
