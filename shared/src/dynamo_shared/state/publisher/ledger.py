"""What STATE is known to have: the sequence and version of each subject's last message."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from dynamo_shared.aio import Pauses
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.bus.protocol import Bus
from dynamo_shared.state import messages
from dynamo_shared.state.last_messages import last_messages
from dynamo_shared.state.versions import Version
from dynamo_shared.text_table import TextTable
from dynamo_shared.wire import subjects

REMEMBERED_TOMBSTONES = 10_000
"""Limit of remembered subjects of deleted objects. If a forgotten name returns, its publish needs a retry."""

_AT_A_TIME = 500
"""Subjects that are compared before other tasks run: there may be hundreds of thousands."""


class LastMessage(NamedTuple):
    """The last message of a subject."""

    sequence: int
    version: Version
    deleted: bool
    digest: int = 0
    """Python's hash (keyed per process) of the payload as read at the start; 0 if this publisher published the message"""


def _encode(known: LastMessage) -> str:
    """Encode as text that remains decodable with any number and any text in the headers of foreign messages."""
    uid, resource_version, created = known.version
    numbers = f"{known.sequence} {resource_version} {known.deleted:d} {known.digest} {len(created)}"
    return f"{numbers} {created}{uid}"


def _decode(text: str) -> LastMessage:
    *numbers, texts = text.split(" ", 5)
    sequence, resource_version, deleted, digest, length = map(int, numbers)
    return LastMessage(sequence, Version(texts[length:], resource_version, texts[:length]), bool(deleted), digest)


class _SubjectTable:
    """Rows of one resource, by the variable part of their subjects: namespace and name."""

    def __init__(self, subject: str) -> None:
        self._prefix = subject[: subject.rindex(".", 0, subject.rindex(".")) + 1]
        self.rows = TextTable()

    def get(self, subject: str) -> str | None:
        return self.rows.get(self._key(subject))

    def set(self, subject: str, text: str) -> None:
        self.rows.set(self._key(subject), text)

    def drop(self, subject: str) -> None:
        self.rows.pop(self._key(subject))

    def texts(self) -> Iterator[tuple[str, str]]:
        """Pairs of subject and text."""
        return ((self._prefix + key, text) for key, text in self.rows.items())

    def _key(self, subject: str) -> str:
        return subject.removeprefix(self._prefix)


class Ledger:
    """Last messages of one cluster by resource and subject; each is one text, because the watcher has one per object."""

    def __init__(self) -> None:
        self._tables: dict[str, _SubjectTable] = {}
        self._tombstones: OrderedDict[str, str] = OrderedDict()
        """subject -> resource id, oldest first"""
        self._buried: Counter[str] = Counter()
        """resource id -> tombstones: counting them would take milliseconds for each of many resources"""
        self.loading = False
        """whether the ledger is incomplete because STATE is being read"""

    def get(self, resource: Resource, subject: str) -> LastMessage | None:
        """The last message of a subject, None if STATE is not known to have one."""
        table = self._tables.get(resource.id)
        text = table.get(subject) if table is not None else None
        return None if text is None else _decode(text)

    def set(self, resource_id: str, subject: str, known: LastMessage) -> None:
        """Record the last message of a subject."""
        table = self._tables.get(resource_id)
        if table is None:
            table = self._tables[resource_id] = _SubjectTable(subject)
        table.set(subject, _encode(known))
        self._unbury(subject)
        if known.deleted:
            self._bury(subject, resource_id)
        self._bound_tombstones()

    def _bury(self, subject: str, resource_id: str) -> None:
        self._unbury(subject)
        self._tombstones[subject] = resource_id
        self._buried[resource_id] += 1

    def _unbury(self, subject: str) -> None:
        if (owner := self._tombstones.pop(subject, None)) is not None:
            self._buried[owner] -= 1

    def _bound_tombstones(self) -> None:
        while len(self._tombstones) > REMEMBERED_TOMBSTONES:
            oldest, owner = self._tombstones.popitem(last=False)
            self._buried[owner] -= 1
            self._tables[owner].drop(oldest)

    def drop(self, resource: Resource, subject: str) -> None:
        """Record that STATE has no message of this subject."""
        self._unbury(subject)
        if (table := self._tables.get(resource.id)) is not None:
            table.drop(subject)

    def clear(self) -> None:
        """Forget everything."""
        self._tables.clear()
        self._tombstones.clear()
        self._buried.clear()

    def count(self, resource: Resource) -> int:
        """How many objects of a resource STATE has."""
        table = self._tables.get(resource.id)
        return len(table.rows) - self._buried[resource.id] if table else 0

    def total(self) -> int:
        """How many objects of all resources STATE has."""
        return sum(len(table.rows) for table in self._tables.values()) - len(self._tombstones)

    async def missing(self, resource: Resource, listed: Container[ObjectKey]) -> list[tuple[ObjectKey, Version]]:
        """Objects that STATE has and that are missing from a list. Other tasks run meanwhile."""
        missing: list[tuple[ObjectKey, Version]] = []
        table, pauses = self._tables.get(resource.id), Pauses(_AT_A_TIME)
        for subject, text in table.texts() if table is not None else ():
            key = subjects.parse_state(subject).key
            if key not in listed and subject not in self._tombstones:
                missing.append((key, _decode(text).version))
            if pauses.due():
                await asyncio.sleep(0)
        return missing

    async def unread(self, read: Container[str]) -> list[tuple[str, str]]:
        """Resource id and subject of every object whose subject was not read. Other tasks run meanwhile."""
        unread: list[tuple[str, str]] = []
        pauses = Pauses(_AT_A_TIME)
        for resource_id, table in tuple(self._tables.items()):
            for subject, _ in table.texts():
                if subject not in read and subject not in self._tombstones:
                    unread.append((resource_id, subject))
                if pauses.due():
                    await asyncio.sleep(0)
        return unread

    @contextmanager
    def incomplete(self) -> Iterator[None]:
        """While the block runs, STATE has more than the ledger knows."""
        self.loading = True
        try:
            yield
        finally:
            self.loading = False

    async def load(self, bus: Bus, cluster: str, resources: Collection[Resource]) -> None:
        """Read what STATE has of some resources."""
        read = Ledger()
        async for message in last_messages(bus, cluster, resources):
            if message is None:
                read.clear()
            elif (resource_id := resource_of(message.subject)) is not None:
                version, deleted = messages.version_in(message.headers), messages.is_tombstone(message.headers)
                known = LastMessage(message.sequence, version, deleted, hash(message.payload))
                read.set(resource_id, message.subject, known)
        for resource in resources:
            self._take_over(resource, read)
        for subject, resource_id in read._tombstones.items():
            self._bury(subject, resource_id)
        self._bound_tombstones()

    def _take_over(self, resource: Resource, read: "Ledger") -> None:
        """Adopt what was read of a resource, and keep messages that were acknowledged meanwhile and not read."""
        before = self._tables.pop(resource.id, None)
        for subject, text in before.texts() if before is not None else ():
            self._unbury(subject)
            known, other = _decode(text), read.get(resource, subject)
            if other is None or other.sequence < known.sequence:
                read.set(resource.id, subject, known)
        if (table := read._tables.get(resource.id)) is not None:
            self._tables[resource.id] = table


def resource_of(subject: str) -> str | None:
    """Resource id of an object's subject; None for a marker or another subject without an object."""
    try:
        return subjects.parse_state(subject).resource_id
    except ValueError:
        return None
