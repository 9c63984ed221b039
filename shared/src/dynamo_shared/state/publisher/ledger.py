"""What STATE is known to have: for each subject the sequence and version of its last message."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from typing import NamedTuple

from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.bus import streams
from dynamo_shared.bus.protocol import Bus, CaughtUp, Message, Start, SubscriptionRestarted
from dynamo_shared.state import messages
from dynamo_shared.state.versions import Version
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


class Ledger:
    """Last messages by resource and subject; each is one text, since the watcher has one of every object."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, str]] = {}
        self._tombstones: OrderedDict[str, str] = OrderedDict()
        """subject -> resource id, the oldest first"""

    def get(self, resource: Resource, subject: str) -> LastMessage | None:
        """The last message of a subject, None where STATE is not known to have one."""
        text = self._tables.get(resource.id, {}).get(subject)
        return None if text is None else _decode(text)

    def set(self, resource_id: str, subject: str, known: LastMessage) -> None:
        """STATE has this message."""
        self._set(resource_id, subject, _encode(known), deleted=known.deleted)

    def _set(self, resource_id: str, subject: str, text: str, *, deleted: bool) -> None:
        self._tables.setdefault(resource_id, {})[subject] = text
        self._tombstones.pop(subject, None)
        if deleted:
            self._tombstones[subject] = resource_id
        if len(self._tombstones) > REMEMBERED_TOMBSTONES:
            oldest, owner = self._tombstones.popitem(last=False)
            self._tables[owner].pop(oldest, None)

    def drop(self, resource: Resource, subject: str) -> None:
        """STATE has no message of this subject."""
        self._tombstones.pop(subject, None)
        self._tables.get(resource.id, {}).pop(subject, None)

    def clear(self) -> None:
        """Nothing is known."""
        self._tables.clear()
        self._tombstones.clear()

    def count(self, resource: Resource) -> int:
        """Objects of a resource."""
        return sum(subject not in self._tombstones for subject in self._tables.get(resource.id, {}))

    def total(self) -> int:
        """Objects of all resources."""
        return sum(len(table) for table in self._tables.values()) - len(self._tombstones)

    def missing(
        self, cluster: str, resource: Resource, listed: Collection[ObjectKey]
    ) -> Iterator[tuple[ObjectKey, Version]]:
        """Objects that STATE has and a list lacks."""
        kept = {subjects.state_subject(cluster, resource.id, key) for key in listed}
        for subject, text in list(self._tables.get(resource.id, {}).items()):
            if subject not in kept and subject not in self._tombstones:
                yield subjects.parse_state(subject).key, _decode(text).version

    def subjects(self) -> Iterator[tuple[str, str]]:
        """Resource id and subject of every object."""
        for resource_id, table in self._tables.items():
            for subject in table:
                if subject not in self._tombstones:
                    yield resource_id, subject

    async def load(self, bus: Bus, cluster: str, resources: Iterable[Resource]) -> None:
        """Reads what STATE has of some resources."""
        read = Ledger()
        async for message in last_messages(bus, cluster, resources, headers_only=False):
            if message is None:
                read.clear()
            elif (resource_id := resource_of(message.subject)) is not None:
                version, deleted = messages.version_in(message.headers), messages.is_tombstone(message.headers)
                known = LastMessage(message.sequence, version, deleted, hash(message.payload))
                read.set(resource_id, message.subject, known)
        for resource_id, table in read._tables.items():
            for subject, text in table.items():
                self._set(resource_id, subject, text, deleted=subject in read._tombstones)


def resource_of(subject: str) -> str | None:
    """Resource id of an object's subject; None for a marker, and for what has no place in STATE."""
    try:
        return subjects.parse_state(subject).resource_id
    except ValueError:
        return None


async def last_messages(
    bus: Bus, cluster: str, resources: Iterable[Resource], *, headers_only: bool
) -> AsyncIterator[Message | None]:
    """The last message of every subject of some resources; None where the reading begins again."""
    filters = [subjects.state_filter(cluster, each) for each in sorted({resource.id for resource in resources})]
    subscription = await bus.subscribe(streams.STATE, filters, start=Start.LAST_PER_SUBJECT, headers_only=headers_only)
    try:
        async for item in subscription:
            if isinstance(item, Message):
                yield item
            elif isinstance(item, SubscriptionRestarted):
                yield None
            elif isinstance(item, CaughtUp):
                return
    finally:
        await subscription.close()
