"""A durable consumer in memory: pending messages with their ack deadlines and numbers of deliveries."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from dynamo_shared.bus.protocol import ConsumerSpec, Message
from dynamo_shared.bus.streams import Retention

from tests.building.memory_bus.store import MemoryStream, matches_any


@dataclass(slots=True)
class _Pending:
    deliveries: int
    due: float
    """when it is redelivered"""


class MemoryConsumer:
    """State of a durable consumer, shared by all that opened it."""

    def __init__(
        self, spec: ConsumerSpec, stream: MemoryStream, clock: Callable[[], float], give_up: Callable[[int, int], None]
    ) -> None:
        self.spec = spec
        self._stream = stream
        self._clock = clock
        self._give_up = give_up
        self._position = 0
        self._pending: dict[int, _Pending] = {}
        self.changed = asyncio.Event()

    def take(self) -> tuple[Message, int] | None:
        """The next message and the number of its deliveries including this one; None if no message is due."""
        now = self._clock()
        for sequence, pending in list(self._pending.items()):
            if pending.due > now:
                continue
            message = self._stream.get(sequence)
            if message is None:
                del self._pending[sequence]
            elif pending.deliveries >= self.spec.max_deliver:
                del self._pending[sequence]
                self._give_up(sequence, pending.deliveries)
            else:
                self._pending[sequence] = _Pending(pending.deliveries + 1, now + self.spec.ack_wait)
                return message, pending.deliveries + 1
        if len(self._pending) >= self.spec.max_unacknowledged:
            return None
        for message in self._stream.after(self._position):
            self._position = message.sequence
            if matches_any(self.spec.subjects, message.subject):
                self._pending[message.sequence] = _Pending(1, now + self.spec.ack_wait)
                return message, 1
        return None

    def next_due(self) -> float | None:
        """Seconds until a message may be due again; None if none is pending."""
        if not self._pending:
            return None
        return max(0.0, min(pending.due for pending in self._pending.values()) - self._clock())

    def done(self, sequence: int) -> None:
        """Acknowledged, or never redelivered."""
        self._pending.pop(sequence, None)
        if self.spec.stream.retention is Retention.WORK_QUEUE:
            self._stream.remove(sequence)
        self.changed.set()

    def again(self, sequence: int, delay: float) -> None:
        """Redelivered after a delay."""
        pending = self._pending.get(sequence)
        if pending is not None:
            pending.due = self._clock() + delay
        self.changed.set()

    def extend(self, sequence: int) -> None:
        """Still in progress."""
        pending = self._pending.get(sequence)
        if pending is not None:
            pending.due = self._clock() + self.spec.ack_wait


class MemoryDelivery:
    """One delivery; see `Delivery` of the protocol."""

    def __init__(self, consumer: MemoryConsumer, message: Message, deliveries: int, check: Callable[[], None]) -> None:
        self._consumer = consumer
        self.message = message
        self.deliveries = deliveries
        self._check = check

    async def ack(self) -> None:
        """Done."""
        self._check()
        self._consumer.done(self.message.sequence)

    async def nak(self, delay: float = 0.0) -> None:
        """Redelivered after this many seconds."""
        self._check()
        self._consumer.again(self.message.sequence, delay)

    async def reject(self) -> None:
        """Never again."""
        self._check()
        self._consumer.done(self.message.sequence)

    async def in_progress(self) -> None:
        """The ack wait starts again."""
        self._check()
        self._consumer.extend(self.message.sequence)
