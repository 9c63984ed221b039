"""One stream in memory: what JetStream does with a message, as far as the platform relies on it."""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dynamo_shared.bus.errors import StreamFullError, WrongSequenceError
from dynamo_shared.bus.protocol import Ack, Message, OutgoingMessage, StreamState
from dynamo_shared.bus.streams import Discard, StreamSpec

_incarnations = itertools.count(1)


def matches(pattern: str, subject: str) -> bool:
    """Whether a subject matches a filter with `*` (one token) and `>` (all that follow)."""
    filters, tokens = pattern.split("."), subject.split(".")
    for index, part in enumerate(filters):
        if part == ">":
            return len(tokens) > index
        if index >= len(tokens) or part not in ("*", tokens[index]):
            return False
    return len(filters) == len(tokens)


def matches_any(patterns: Iterable[str], subject: str) -> bool:
    """Whether a subject matches one of several filters."""
    return any(matches(pattern, subject) for pattern in patterns)


@dataclass(slots=True)
class _Stored:
    message: Message
    expires: float
    """time at which it expires; 0: never"""


class MemoryStream:
    """Messages by sequence. `clock` gives seconds that only grow."""

    def __init__(self, spec: StreamSpec, clock: Callable[[], float]) -> None:
        self.spec = spec
        self._clock = clock
        self._incarnation = f"memory-{next(_incarnations)}"
        self._messages: dict[int, _Stored] = {}
        self._subjects: dict[str, deque[int]] = {}
        self._ids: dict[str, tuple[int, float]] = {}
        self.last_sequence = 0

    def publish(self, message: OutgoingMessage) -> Ack:
        """Stores a message, or raises with the reason. Checks have the server's order: duplicates first."""
        self.expire()
        now = self._clock()
        subject, msg_id, expected = message.subject, message.msg_id, message.expected_last_subject_sequence
        if msg_id:
            known = self._ids.get(msg_id)
            if known is not None and now - known[1] < self.spec.duplicate_window:
                return Ack(self.spec.name, known[0], True)
        if expected is not None and expected != self.last_of(subject):
            raise WrongSequenceError(f"wrong last sequence: {self.last_of(subject)}")
        full = 0 < self.spec.max_messages <= len(self._messages)
        if full and self.spec.discard is Discard.NEW:
            raise StreamFullError("maximum messages exceeded")
        self.last_sequence += 1
        sequence = self.last_sequence
        lives = [seconds for seconds in (message.ttl if self.spec.message_ttl else 0.0, self.spec.max_age) if seconds]
        expires = now + min(lives) if lives else 0.0
        self._messages[sequence] = _Stored(
            Message(subject, message.payload, dict(message.headers or {}), sequence), expires
        )
        self._subjects.setdefault(subject, deque()).append(sequence)
        if msg_id:
            self._ids[msg_id] = (sequence, now)
        if full:
            self.remove(next(iter(self._messages)))
        while 0 < self.spec.max_messages_per_subject < len(self._subjects[subject]):
            self.remove(self._subjects[subject][0])
        return Ack(self.spec.name, sequence, False)

    def get(self, sequence: int) -> Message | None:
        """A stored message."""
        stored = self._messages.get(sequence)
        return stored.message if stored is not None else None

    def last_of(self, subject: str) -> int:
        """Sequence of a subject's last message, 0 without one."""
        sequences = self._subjects.get(subject)
        return sequences[-1] if sequences else 0

    def remove(self, sequence: int) -> None:
        """Removes a message."""
        stored = self._messages.pop(sequence, None)
        if stored is None:
            return
        sequences = self._subjects[stored.message.subject]
        sequences.remove(sequence)
        if not sequences:
            del self._subjects[stored.message.subject]

    def after(self, sequence: int) -> Iterator[Message]:
        """Messages with a larger sequence, in order."""
        for number in range(max(sequence + 1, self.first_sequence), self.last_sequence + 1):
            message = self.get(number)
            if message is not None:
                yield message

    @property
    def first_sequence(self) -> int:
        """Sequence of the oldest message; one above the last if the stream is empty."""
        return next(iter(self._messages), self.last_sequence + 1)

    def state(self) -> StreamState:
        """What the stream holds."""
        self.expire()
        return StreamState(self._incarnation, len(self._messages), self.first_sequence, self.last_sequence)

    def expire(self) -> None:
        """Removes expired messages."""
        now = self._clock()
        for sequence in [number for number, stored in self._messages.items() if 0 < stored.expires <= now]:
            self.remove(sequence)
        self._ids = {name: entry for name, entry in self._ids.items() if now - entry[1] < self.spec.duplicate_window}
