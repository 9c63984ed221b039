"""What STATE is known to have: for each subject the sequence and version of its last message."""

from collections import OrderedDict
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.bus.protocol import Bus
from dynamo_shared.state import messages
from dynamo_shared.state.last_messages import last_messages
from dynamo_shared.state.versions import Version
from dynamo_shared.text_table import TextTable
from dynamo_shared.wire import subjects

REMEMBERED_TOMBSTONES = 10_000
"""Subjects of deleted objects that are remembered. Forgetting one costs a second question should its name come back."""


class LastMessage(NamedTuple):
    """Last message of a subject."""

    sequence: int
    version: Version
    deleted: bool
    digest: int = 0
    """Python's hash of the payload as it was read at the start, keyed by this process; 0 where we published it."""


def _encode(known: LastMessage) -> str:
    """As a text that any number and any text in the headers of others leaves readable."""
    uid, resource_version, created = known.version
    numbers = f"{known.sequence} {resource_version} {known.deleted:d} {known.digest} {len(created)}"
    return f"{numbers} {created}{uid}"


def _decode(text: str) -> LastMessage:
    *numbers, texts = text.split(" ", 5)
    sequence, resource_version, deleted, digest, length = map(int, numbers)
    return LastMessage(sequence, Version(texts[length:], resource_version, texts[:length]), bool(deleted), digest)


class _SubjectTable:
    """Rows of one resource, by what differs in their subjects: namespace and name."""

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
        """By subject."""
        return ((self._prefix + key, text) for key, text in self.rows.items())

    def _key(self, subject: str) -> str:
        return subject.removeprefix(self._prefix)


class Ledger:
    """Last messages of one cluster by resource and subject; each is one text, since the watcher has one of every object."""

    def __init__(self) -> None:
        self._tables: dict[str, _SubjectTable] = {}
        self._tombstones: OrderedDict[str, str] = OrderedDict()
        """subject -> resource id, the oldest first"""
        self.loading = False
        """whether what STATE has is being read, and little is known yet"""

    def get(self, resource: Resource, subject: str) -> LastMessage | None:
        """The last message of a subject, None where STATE is not known to have one."""
        table = self._tables.get(resource.id)
        text = table.get(subject) if table is not None else None
        return None if text is None else _decode(text)

    def set(self, resource_id: str, subject: str, known: LastMessage) -> None:
        """STATE has this message."""
        table = self._tables.get(resource_id)
        if table is None:
            table = self._tables[resource_id] = _SubjectTable(subject)
        table.set(subject, _encode(known))
        self._tombstones.pop(subject, None)
        if known.deleted:
            self._tombstones[subject] = resource_id
        self._bound_tombstones()

    def _bound_tombstones(self) -> None:
        while len(self._tombstones) > REMEMBERED_TOMBSTONES:
            oldest, owner = self._tombstones.popitem(last=False)
            self._tables[owner].drop(oldest)

    def drop(self, resource: Resource, subject: str) -> None:
        """STATE has no message of this subject."""
        self._tombstones.pop(subject, None)
        if (table := self._tables.get(resource.id)) is not None:
            table.drop(subject)

    def clear(self) -> None:
        """Nothing is known."""
        self._tables.clear()
        self._tombstones.clear()

    def count(self, resource: Resource) -> int:
        """Objects of a resource."""
        table = self._tables.get(resource.id)
        return len(table.rows) - [*self._tombstones.values()].count(resource.id) if table else 0

    def total(self) -> int:
        """Objects of all resources."""
        return sum(len(table.rows) for table in self._tables.values()) - len(self._tombstones)

    def missing(self, resource: Resource, listed: Container[ObjectKey]) -> Iterator[tuple[ObjectKey, Version]]:
        """Objects that STATE has and a list lacks."""
        if (table := self._tables.get(resource.id)) is None:
            return
        for subject, text in table.texts():
            key = subjects.parse_state(subject).key
            if key not in listed and subject not in self._tombstones:
                yield key, _decode(text).version

    def subjects(self) -> Iterator[tuple[str, str]]:
        """Resource id and subject of every object."""
        for resource_id, table in self._tables.items():
            for subject, _ in table.texts():
                if subject not in self._tombstones:
                    yield resource_id, subject

    @contextmanager
    def incomplete(self) -> Iterator[None]:
        """While the block runs, STATE has more than is known of it."""
        self.loading = True
        try:
            yield
        finally:
            self.loading = False

    async def load(self, bus: Bus, cluster: str, resources: Collection[Resource]) -> None:
        """Reads what STATE has of some resources."""
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
        self._tombstones |= read._tombstones
        self._bound_tombstones()

    def _take_over(self, resource: Resource, read: "Ledger") -> None:
        """What was read of a resource, and what was acknowledged meanwhile and not read."""
        before = self._tables.pop(resource.id, None)
        for subject, text in before.texts() if before is not None else ():
            self._tombstones.pop(subject, None)
            known, other = _decode(text), read.get(resource, subject)
            if other is None or other.sequence < known.sequence:
                read.set(resource.id, subject, known)
        if (table := read._tables.get(resource.id)) is not None:
            self._tables[resource.id] = table


def resource_of(subject: str) -> str | None:
    """Resource id of an object's subject; None for a marker, and for what has no place in STATE."""
    try:
        return subjects.parse_state(subject).resource_id
    except ValueError:
        return None
