"""What is to be published to STATE.

For each subject at most one publish is under way, and at most one newer version waits: of a burst of changes of one
object the first and the last are published.
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
"""Of what is not acknowledged yet. There may be far more objects than that, and NATS away when all of them come."""

_AROUND = 2048
"""Bytes of a message besides its payload: its headers, and what Python needs for them."""


@dataclass(frozen=True, slots=True, eq=False)
class StateMessage:
    """A version of an object, or the deletion of one, that is to be published. `received`: when the API server reported it."""

    subject: str
    resource: Resource
    version: Version
    change: ChangeType
    received: float
    headers: dict[str, str]
    payload: bytes = b""
    """As STATE holds it, empty for a tombstone. An object that waits takes a fifth of the memory when it is encoded."""

    @property
    def deleted(self) -> bool:
        """Whether it is a tombstone."""
        return not self.payload

    @property
    def size(self) -> int:
        """Bytes of memory that it takes, roughly."""
        return len(self.payload) + _AROUND


def object_message(
    subject: str, resource: Resource, obj: KubeObject, change: ChangeType, received: float
) -> StateMessage:
    """Says that an object is there."""
    payload, encoding = messages.pack(messages.encode_object(obj))
    headers = messages.object_headers(obj, change) | encoding
    return StateMessage(subject, resource, version_of(obj), change, received, headers, payload)


def tombstone(subject: str, resource: Resource, version: Version, received: float) -> StateMessage:
    """Says that an object is gone."""
    return StateMessage(subject, resource, version, ChangeType.DELETED, received, messages.tombstone_headers(version))


@dataclass(slots=True)
class _Slot:
    waiting: StateMessage | None = None
    under_way: StateMessage | None = None


class Outbox:
    """Messages by subject. `wake` is set when there is something to do for the one who sends."""

    def __init__(self) -> None:
        self._slots: dict[str, _Slot] = {}
        self._ready: deque[str] = deque()
        #: resource id -> subjects that have a slot
        self._open: Counter[str] = Counter()
        self._settled = asyncio.Event()
        self._size = 0
        """bytes of all that waits or is under way"""
        self.under_way = 0
        self.wake = asyncio.Event()

    def __len__(self) -> int:
        """Subjects with something that is not acknowledged yet."""
        return len(self._slots)

    @property
    def is_ready(self) -> bool:
        """Whether there is a message that may be sent now."""
        return bool(self._ready)

    def newest(self, subject: str) -> StateMessage | None:
        """The newest message of a subject that is not acknowledged yet."""
        slot = self._slots.get(subject)
        return None if slot is None else slot.waiting or slot.under_way

    def is_waiting(self, subject: str) -> bool:
        """Whether a message waits, whatever is under way."""
        slot = self._slots.get(subject)
        return slot is not None and slot.waiting is not None

    def add(self, message: StateMessage) -> None:
        """Lets a message wait, in the place of an older one of its subject."""
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
        """The next message to send; it is under way until it is settled. IndexError where none is ready."""
        slot = self._slots[self._ready.popleft()]
        message = slot.under_way = slot.waiting
        assert message is not None
        slot.waiting = None
        self.under_way += 1
        return message

    def retry(self, message: StateMessage) -> None:
        """Lets a message that is under way wait again, unless a newer one does."""
        slot = self._slots[message.subject]
        if slot.waiting is None:
            slot.waiting = message
            self._size += message.size

    def settle(self, message: StateMessage) -> None:
        """A message is under way no more: its subject is free for the next one."""
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
        """Forgets what waits. What is under way is settled in its time."""
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
        """Returns when nothing of the resource waits for its acknowledgement."""
        while self._open[resource.id]:
            self._settled.clear()
            await self._settled.wait()

    async def room(self) -> None:
        """Returns when more may be added, as a rule at once."""
        while self._size > MOST_BYTES:
            self._settled.clear()
            await self._settled.wait()
