"""The object cache: the last known version of every object that a service reads, with indexes.

Two sources fill the cache, and one rule for each decides which version counts:

1. STATE (`take`): its order decides. A later message replaces an earlier one, whatever their versions: a data store
   that was set back, a wrong clock and a corrected forged number need no rule of their own.
2. The API server's answers to this service's own writes (`put`, `remove`): they are ahead of STATE, and a service must
   not work on an object that is older than its own last write. So a STATE message that is older than an answer is held
   back. An answer that is older than the last STATE message is late, and is dropped. An answer is `overdue` if STATE
   does not confirm it within `GRACE` seconds, or still has the object after its deletion: the watcher may be
   unavailable, or the data store was set back to before the write, of which no watcher may ever learn. Then the object
   in the API server decides (`correct`).

Objects are plain dicts, shared and not copied: callers read an object and never write into it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias, TypeVar

import structlog

from dynamo_shared.api.objects import KubeObject, without_managed_fields
from dynamo_shared.api.resources import ObjectKey, Resource, key_of
from dynamo_shared.lru import LaneLruCache
from dynamo_shared.state.memory import ObjectMemory
from dynamo_shared.state.packer import Packer, Recent
from dynamo_shared.state.table import IndexFunction, ObjectIndex, ObjectRecords, ObjectTable
from dynamo_shared.state.versions import Version, version_of

Objects: TypeAlias = list[KubeObject]
Listener: TypeAlias = Callable[[Resource, ObjectKey, KubeObject | None, KubeObject | None], None]
LeaveListener: TypeAlias = Callable[[Resource, KubeObject], object]

_V = TypeVar("_V")

REMEMBERED_DELETIONS = 10_000
"""How many uids of deleted objects are remembered, so that a late answer to a write does not restore a deleted object.
If there are more, the namespace with the most forgets its oldest.
"""

GRACE = 30.0
"""Seconds within which STATE must confirm a write: the watcher needs milliseconds, or seconds after a reconnection."""

READ_AT_A_TIME = 250
"""Objects that `read_by_index` reads before other tasks run: about ten milliseconds."""

log = structlog.get_logger("dynamo.bus.cache")

_Slot: TypeAlias = tuple[str, ObjectKey]
"""Resource id and key."""


class OwnWrite(NamedTuple):
    """The API server's answer to a write of this service, or a STATE message that contradicts one, with its version.

    `due`: when to ask the API server for the current object, on the cache's clock.
    """

    resource: Resource
    version: Version
    due: float


OwnWrites: TypeAlias = list[tuple[ObjectKey, OwnWrite]]


class ObjectCache:
    """What a service knows of the cluster. `StateReader` fills it, and writers put their own last writes into it.

    `clock`: monotonic, in seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tables: dict[str, ObjectTable] = {}
        self._recent: Recent[tuple[ObjectTable, ObjectKey]] = Recent()
        self._listeners: list[Listener] = []
        self._on_leave: list[LeaveListener] = []
        self._deleted: LaneLruCache[str, bool] = LaneLruCache(REMEMBERED_DELETIONS)
        """by namespace: uids of deleted objects -> whether a writer learned of the deletion before STATE"""
        self._written: dict[_Slot, OwnWrite] = {}
        """own writes that STATE has not confirmed yet"""
        self._settled = asyncio.Event()
        """one of them has ended; set also if no task waits"""
        self._under_way: Counter[_Slot] = Counter()
        """own writes without an answer yet"""
        self._held: dict[_Slot, OwnWrite] = {}
        """STATE messages that are held back"""

    def get(self, resource: Resource, key: ObjectKey) -> KubeObject | None:
        """The object, or None. Read only."""
        table = self._tables.get(resource.id)
        return table.get(key) if table is not None else None

    def get_by_uid(self, resource: Resource, key: ObjectKey, uid: str) -> KubeObject | None:
        """The object, or None if it is gone, also if another one has its name now. Read only."""
        obj = self.get(resource, key)
        return obj if obj is not None and obj["metadata"]["uid"] == uid else None

    def list(self, resource: Resource, namespace: str | None = None) -> Objects:
        """All objects of a resource, or only of one namespace. Read only."""
        table = self._tables.get(resource.id)
        if table is None:
            return []
        if namespace is None:
            return list(table.objects())
        return list(table.objects_in(namespace))

    def keys(self, resource: Resource, namespace: str | None = None) -> set[ObjectKey]:
        """Keys of all objects of a resource, or only of one namespace."""
        table = self._tables.get(resource.id)
        if table is None:
            return set()
        chosen = table.namespaces if namespace is None else {namespace: table.namespaces.get(namespace, {})}
        return {ObjectKey(each, name) for each, names in chosen.items() for name in names}

    def namespaces(self) -> set[str]:
        """Namespaces that have objects of any resource."""
        return {each for table in self._tables.values() for each in table.namespaces}

    def count(self, resource: Resource) -> int:
        """The number of objects of a resource."""
        table = self._tables.get(resource.id)
        return table.count if table is not None else 0

    def add_index(self, resource: Resource, name: str, function: IndexFunction) -> None:
        """Index objects, including existing ones, by the values that `function` returns for them."""
        table = self._table(resource)
        index = table.indexes[name] = ObjectIndex(function)
        for obj in table.objects():
            index.replace(key_of(obj), set(), index.values(obj))

    def add_record(self, resource: Resource, name: str, function: Callable[[KubeObject], object]) -> None:
        """Keep what `function` returns for each object, unpacked: a few values by which one of many objects is chosen.

        Call it before objects are added.
        """
        self._table(resource).records[name] = ObjectRecords(function, {})

    def record(self, resource: Resource, name: str, key: ObjectKey) -> object | None:
        """The record of an object, None without the object. KeyError if no such record is kept."""
        return self._table(resource).records[name].by_key.get(key)

    def keep_only(self, resource: Resource, kept: Callable[[KubeObject], KubeObject]) -> None:
        """Keep only `kept(obj)` of each object, for resources with many large objects of which little is read.

        Call it before objects are added. `metadata` must keep at least name, namespace, uid and resourceVersion.
        """
        self._table(resource).kept = kept

    def pack(self, *resources: Resource) -> None:
        """Keep the objects of these resources packed, except for recently used ones: few of many objects are in use at
        a time.

        Call it before objects are added. Listing all of them is slow.
        """
        for resource in resources:
            self._table(resource).packer = Packer()

    def indexed(self, resource: Resource, name: str) -> Iterator[tuple[str, ObjectKey]]:
        """Values of an index, each with the key of an object that has it. KeyError if the index does not exist."""
        yield from self._table(resource).indexes[name].all()

    def by_index(self, resource: Resource, name: str, value: str) -> Objects:
        """Objects for which the index function returned the value. KeyError if the index does not exist."""
        table = self._table(resource)
        # Most values have no objects: a graph has no children of most resources.
        if not (keys := table.indexes[name].keys(value)):
            return []
        objects = (table.get(key) for key in keys)
        return [obj for obj in objects if obj is not None]

    async def read_by_index(self, resource: Resource, name: str, value: str) -> Objects:
        """Like `by_index`, but other tasks run meanwhile: users may give thousands of objects the same value.

        An object that changes meanwhile is read before or after its change.
        """
        objects, table = Objects(), self._table(resource)
        for number, key in enumerate(tuple(table.indexes[name].keys(value)), 1):
            if (obj := table.get(key)) is not None:
                objects.append(obj)
            if number % READ_AT_A_TIME == 0:
                await asyncio.sleep(0)
        return objects

    def keys_by_index(self, resource: Resource, name: str, value: str) -> Collection[ObjectKey]:
        """Keys of the objects of `by_index`, without unpacking them. Valid until the cache changes."""
        return self._table(resource).indexes[name].keys(value)

    def by_indexes(self, resources: Iterable[Resource], name: str, value: str) -> Iterator[tuple[Resource, KubeObject]]:
        """Like `by_index`, for several resources that all have this index; each object with its resource."""
        for resource in resources:
            table = self._tables[resource.id]
            # An owner has no objects of most resources.
            for key in table.indexes[name].keys(value):
                if (obj := table.get(key)) is not None:
                    yield resource, obj

    def version(self, resource: Resource, key: ObjectKey) -> Version | None:
        """Version of the cached object, or None."""
        obj = self.get(resource, key)
        return version_of(obj) if obj is not None else None

    def is_written(self, resource: Resource, key: ObjectKey) -> bool:
        """Whether this service has written the object, and the answer or the confirmation by STATE is still missing."""
        slot = (resource.id, key)
        return slot in self._written or slot in self._under_way

    def is_answer(self, resource: Resource, obj: KubeObject) -> bool:
        """Whether this version of an object is the answer to this service's last write, which STATE has not confirmed."""
        written = self._written.get((resource.id, key_of(obj)))
        return written is not None and written.version == version_of(obj)

    async def confirmed(self) -> None:
        """Return when STATE has the writes that this service has made until now.

        Deletions are not awaited: they name a uid, so repeating them changes nothing.
        """
        waiting = set(self._written)
        while waiting := waiting & self._written.keys():
            self._settled.clear()
            await self._settled.wait()

    @contextmanager
    def writing(self, resource: Resource, key: ObjectKey) -> Iterator[None]:
        """The block writes this object: STATE may have the new version before the answer arrives."""
        slot = (resource.id, key)
        self._under_way[slot] += 1
        try:
            yield
        finally:
            self._under_way[slot] -= 1
            if not self._under_way[slot]:
                del self._under_way[slot]

    def put(self, resource: Resource, obj: KubeObject) -> bool:
        """Store the API server's answer to a write, unless it is late: STATE had a newer version or the deletion."""
        key, version = key_of(obj), version_of(obj)
        held = self.version(resource, key)
        late = held is not None and version.resource_version <= held.resource_version
        if self._deleted.get(key.namespace, version.uid) is not None or late:
            return False
        self._written[resource.id, key] = OwnWrite(resource, version, self._clock() + GRACE)
        self._held.pop((resource.id, key), None)
        return self._set(resource, key, without_managed_fields(obj))

    def remove(self, resource: Resource, key: ObjectKey, uid: str) -> bool:
        """Remove an object that the API server reports as deleted, if the cached object still has this uid."""
        self._deleted.put(key.namespace, uid, True)
        held = self.version(resource, key)
        if held is None or held.uid != uid:
            return False
        self._settle((resource.id, key))
        return self._set(resource, key, None)

    def confirm(self, resource: Resource, key: ObjectKey, version: Version) -> bool:
        """Record that STATE has this version of an object. Returns whether it is this service's last write.

        If so, the cache already has the API server's answer, and the caller need not decode the message.
        """
        slot = (resource.id, key)
        written = self._written.get(slot)
        if written is None or written.version != version:
            return False
        self._settle(slot)
        self._held.pop(slot, None)
        return True

    def take(
        self,
        resource: Resource,
        key: ObjectKey,
        obj: KubeObject | None,
        version: Version,
        *,
        content: bytes | None = None,
    ) -> bool:
        """Store the next STATE message about a key; None for the deletion of the object of `version`.

        `content`: the object as JSON, if known: a packed object is not encoded again.

        Returns whether anything changed. A message that is older than this service's own write is held back: see
        `overdue`.
        """
        slot = (resource.id, key)
        self._held.pop(slot, None)
        if self._is_behind(slot, obj, version):
            self._held[slot] = OwnWrite(resource, version, self._clock() + GRACE)
            return False
        self._end_own_write(slot, obj, version)
        return self._set(resource, key, obj, content)

    def forget(self, resource: Resource, keys: Iterable[ObjectKey]) -> None:
        """Remove objects that other replicas now handle. Listeners of changes are not called: the objects still exist."""
        table = self._table(resource)
        for key in keys:
            if (old := table.get(key)) is not None:
                table.set(key, None)
                self._notify_leave(resource, old)
            self._settle((resource.id, key))
            self._held.pop((resource.id, key), None)

    def overdue(self) -> OwnWrites:
        """Own writes that STATE has not confirmed in time, and STATE messages about objects that this service has
        deleted.

        Each is due again after another `GRACE` seconds.
        """
        now = self._clock()
        late: OwnWrites = []
        # If both exist for a slot, the write is overdue.
        for slot, write in (self._held | self._written).items():
            if write.due <= now:
                kept = self._written if slot in self._written else self._held
                kept[slot] = write._replace(due=now + GRACE)
                late.append((slot[1], write))
        return late

    def correct(self, key: ObjectKey, write: OwnWrite, obj: KubeObject | None) -> bool:
        """Replace an overdue write with the API server's current object; None if no object has that name.

        Returns whether anything changed. Nothing changes if a STATE message or another write came meanwhile.
        """
        resource, slot = write.resource, (write.resource.id, key)
        waiting = self._written.get(slot) or self._held.get(slot)
        if waiting is None or waiting.version != write.version:
            return False
        deleted = slot not in self._written
        self._held.pop(slot, None)
        if obj is None:
            return not deleted and self.remove(resource, key, write.version.uid)
        version = version_of(obj)
        if not deleted and version == write.version:
            # STATE is behind: the held message is older than the API server's object.
            return False
        if version.uid == write.version.uid:
            if not deleted and version.resource_version > write.version.resource_version:
                changed = self._set(resource, key, without_managed_fields(obj))
                # Only now, so that listeners do not take another client's change for this service's own.
                self._written[slot] = OwnWrite(resource, version, self._clock() + GRACE)
                return changed
            log.warning(
                "own write is gone: the API server's data store was restored", resource=resource.id, key=str(key)
            )
        self._end_own_write(slot, obj, version)
        return self._set(resource, key, obj)

    def _is_behind(self, slot: _Slot, obj: KubeObject | None, version: Version) -> bool:
        written = self._written.get(slot)
        if obj is not None and self._deleted.get(slot[1].namespace, version.uid):
            return True
        # The deletion of a written object is final.
        ends = obj is None and written is not None and written.version.uid == version.uid
        return written is not None and not ends and version.resource_version < written.version.resource_version

    def _end_own_write(self, slot: _Slot, obj: KubeObject | None, version: Version) -> None:
        """Another version of the object counts now: wait no longer for the confirmation of a write or a deletion."""
        self._settle(slot)
        if obj is not None:
            self._deleted.pop(slot[1].namespace, version.uid)
        elif version.uid:
            self._deleted.put(slot[1].namespace, version.uid, False)

    def _settle(self, slot: _Slot) -> None:
        if self._written.pop(slot, None) is not None:
            self._settled.set()

    def _set(self, resource: Resource, key: ObjectKey, obj: KubeObject | None, content: bytes | None = None) -> bool:
        table = self._table(resource)
        # Each key has its own copy of the namespace, and many objects share a namespace.
        key = ObjectKey(sys.intern(key.namespace), key.name)
        old = table.get(key)
        if obj is not None and table.kept is not None:
            obj, content = table.kept(obj), None
        if old == obj:
            return False
        if old is not None and obj is not None and version_of(old).uid != version_of(obj).uid:
            # Another object with the same name: first report the end of the old one, so that what depends on it is removed.
            self._set(resource, key, None)
            old = None
        table.set(key, obj, content)
        self._notify(resource, key, old, obj)
        if old is not None and obj is None:
            self._notify_leave(resource, old)
        return True

    def on_change(self, listener: Listener) -> None:
        """Register a listener that is called with (resource, key, old, new) after each change; `new` is None after a
        deletion.

        If another object with the same name replaces an object, the deletion is reported first, then the new object.
        """
        self._listeners.append(listener)

    def on_leave(self, listener: LeaveListener) -> None:
        """Register a listener that is called with (resource, object) for each object that left the cache, after the
        listeners of changes.

        The object was deleted, was replaced by another of its name, or belongs to another replica: data kept for it can
        be removed.
        """
        self._on_leave.append(listener)

    def memory(self) -> ObjectMemory[_V]:
        """A dict for a writer's data per object, by uid. The cache removes the entries of objects that leave it."""
        memory: ObjectMemory[_V] = ObjectMemory(self.get_by_uid)
        self.on_leave(lambda _, obj: memory.pop(obj["metadata"]["uid"], None))
        return memory

    def _table(self, resource: Resource) -> ObjectTable:
        table = self._tables.get(resource.id)
        if table is None:
            table = self._tables[resource.id] = ObjectTable(self._recent)
        return table

    def _notify(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        for listener in self._listeners:
            try:
                listener(resource, key, old, new)
            except Exception:  # a listener's bug must not stop the other listeners or the cache
                log.exception("cache listener failed", resource=resource.id, key=str(key))

    def _notify_leave(self, resource: Resource, obj: KubeObject) -> None:
        for listener in self._on_leave:
            try:
                listener(resource, obj)
            except Exception:
                log.exception("cache listener failed", resource=resource.id, key=str(key_of(obj)))
