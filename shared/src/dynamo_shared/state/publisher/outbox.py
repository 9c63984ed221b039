"""Queues the messages for STATE.

Of each subject at most one publish is under way, and at most one newer version waits: of a burst of changes of one
object, the first and the last are published.
"""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import Resource
from dynamo_shared.bus import tracing
from dynamo_shared.state import messages
from dynamo_shared.state.messages import ChangeType
from dynamo_shared.state.versions import Version, version_of

MOST_BYTES = 64 << 20
"""Limit of the messages that are not acknowledged yet. Many more objects may come while NATS is unavailable."""

_AROUND = 2048
"""Bytes of a message in addition to its payload: the headers, and Python's own overhead."""


@dataclass(frozen=True, slots=True, eq=False)
class StateMessage:
    """An object's version, or its deletion, to publish. `received`: when the API server reported it."""

    subject: str
    resource: Resource
    version: Version
    change: ChangeType
    received: float
    headers: dict[str, str]
    payload: bytes = b""
    """As stored in STATE, empty for a tombstone. A waiting object takes a fifth of the memory if it is encoded."""

    @property
    def deleted(self) -> bool:
        """Whether it is a tombstone."""
        return not self.payload

    @property
    def size(self) -> int:
        """Bytes of memory, approximately."""
        return len(self.payload) + _AROUND


def object_message(
    subject: str, resource: Resource, obj: KubeObject, change: ChangeType, received: float
) -> StateMessage:
    """A message with an object."""
    payload, encoding = messages.pack(messages.encode_object(obj))
    headers = messages.object_headers(obj, change) | encoding
    return StateMessage(subject, resource, version_of(obj), change, received, headers, payload)


def tombstone(subject: str, resource: Resource, version: Version, received: float) -> StateMessage:
    """A message with the deletion of an object."""
    return StateMessage(subject, resource, version, ChangeType.DELETED, received, messages.tombstone_headers(version))


@dataclass(slots=True)
class _Slot:
    waiting: StateMessage | None = None
    under_way: StateMessage | None = None


class Outbox:
    """Messages by subject. `wake` is set when the sender has something to do."""

    def __init__(self) -> None:
        self._slots: dict[str, _Slot] = {}
        self._ready: deque[str] = deque()
        #: resource id -> subjects that have a slot
        self._open: Counter[str] = Counter()
        self._settled = asyncio.Event()
        self._size = 0
        """bytes of all waiting messages and messages under way"""
        self.under_way = 0
        self.wake = asyncio.Event()

    def __len__(self) -> int:
        """Subjects with a message that is not acknowledged yet."""
        return len(self._slots)

    @property
    def is_ready(self) -> bool:
        """Whether a message may be sent now."""
        return bool(self._ready)

    def newest(self, subject: str) -> StateMessage | None:
        """The newest unacknowledged message of a subject."""
        slot = self._slots.get(subject)
        return None if slot is None else slot.waiting or slot.under_way

    def is_waiting(self, subject: str) -> bool:
        """Whether a message of the subject waits, in addition to one that may be under way."""
        slot = self._slots.get(subject)
        return slot is not None and slot.waiting is not None

    def add(self, message: StateMessage) -> None:
        """Queue a message; it replaces an older waiting one of its subject."""
        tracing.inject(message.headers)
        slot = self._slots.get(message.subject)
        if slot is None:
            slot = self._slots[message.subject] = _Slot()
            self._open[message.resource.id] += 1
            self._ready.append(message.subject)
            self.wake.set()
        if slot.waiting is not None:
            self._size -= slot.waiting.size
        slot.waiting = message
        self._size += message.size

    def take(self) -> StateMessage:
        """The next message to send; it is under way until it is settled. IndexError if no message is ready."""
        slot = self._slots[self._ready.popleft()]
        message = slot.under_way = slot.waiting
        assert message is not None
        slot.waiting = None
        self.under_way += 1
        return message

    def retry(self, message: StateMessage) -> None:
        """Queue a message under way again, unless a newer one waits."""
        slot = self._slots[message.subject]
        if slot.waiting is None:
            slot.waiting = message
            self._size += message.size

    def settle(self, message: StateMessage) -> None:
        """A message is no longer under way: the next message of its subject may be sent."""
        slot = self._slots[message.subject]
        slot.under_way = None
        self.under_way -= 1
        self._size -= message.size
        if slot.waiting is not None:
            self._ready.append(message.subject)
        else:
            self._close(message)
        self._settled.set()
        self.wake.set()

    def clear(self) -> None:
        """Forget the waiting messages. Those under way are settled later."""
        for slot in list(self._slots.values()):
            waiting, slot.waiting = slot.waiting, None
            if waiting is None:
                continue
            self._size -= waiting.size
            if slot.under_way is None:
                self._close(waiting)
        self._ready.clear()
        self._settled.set()

    def _close(self, message: StateMessage) -> None:
        del self._slots[message.subject]
        self._open[message.resource.id] -= 1

    async def flushed(self, resource: Resource) -> None:
        """Return when all messages of the resource are acknowledged."""
        while self._open[resource.id]:
            self._settled.clear()
            await self._settled.wait()

    async def room(self) -> None:
        """Return when more messages may be added; usually at once."""
        while self._size > MOST_BYTES:
            self._settled.clear()
            await self._settled.wait()
