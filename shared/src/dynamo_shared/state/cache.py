"""The object cache: the last known state of every object a service reads, with indexes.

Two sources fill it, and two rules say what counts:

1. STATE (`take`): its order is the order. What comes later replaces what came before, whatever their versions: a data
   store that was set back, a clock that is wrong and a forged number that was put right need no rule of their own.
2. The API server's answers to this service's own writes (`put`, `remove`): they are ahead of STATE, and a service must
   not work on an object that is older than what it has written itself. So a word of STATE that is older than an answer
   is held back. An answer that is older than what STATE said already comes late, and is dropped. An answer that STATE
   does not confirm in `GRACE` seconds, or whose object STATE has still where it was deleted, is `overdue`: the watcher may
   be away, or the store was set back to before it, of which no watcher need have heard. What the API server has then is
   the truth (`correct`).

Objects are plain dicts and shared, not copied: the caller reads an object and never writes into it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias, TypeVar, cast

import structlog

from dynamo_shared.api.objects import KubeObject, size_of, without_managed_fields
from dynamo_shared.api.resources import ObjectKey, Resource, key_of
from dynamo_shared.newest import Newest
from dynamo_shared.state.packing import Packer, Recent
from dynamo_shared.state.versions import Version, version_of

Objects: TypeAlias = list[KubeObject]
IndexFunction: TypeAlias = Callable[[KubeObject], Iterable[str]]
Listener: TypeAlias = Callable[[Resource, ObjectKey, KubeObject | None, KubeObject | None], None]
LeaveListener: TypeAlias = Callable[[Resource, KubeObject], object]

_V = TypeVar("_V")

REMEMBERED_DELETIONS = 10_000
"""Uids of deleted objects that are remembered, so that a late answer to a write does not bring one back to life."""

GRACE = 30.0
"""Seconds that STATE has to confirm a write. The watcher publishes a change within milliseconds, and within seconds of a
reconnection."""

log = structlog.get_logger("dynamo.bus.cache")


FEW = 8
"""Objects of one value of an index that are kept as a tuple: a dict of one takes 200 bytes, and most values have one."""


class _Index:
    """Values of one index function, and which objects have them."""

    def __init__(self, function: IndexFunction) -> None:
        self._function = function
        self._keys: dict[str, tuple[ObjectKey, ...] | dict[ObjectKey, None]] = {}

    def values(self, obj: KubeObject | None) -> set[str]:
        return set(self._function(obj)) if obj is not None else set()

    def replace(self, key: ObjectKey, before: set[str], after: set[str]) -> None:
        for value in before - after:
            self._remove(value, key)
        for value in after - before:
            self._add(value, key)

    def keys(self, value: str) -> Collection[ObjectKey]:
        return self._keys.get(value, ())

    def all(self) -> Iterator[tuple[str, ObjectKey]]:
        for value, keys in self._keys.items():
            for key in keys:
                yield value, key

    def _add(self, value: str, key: ObjectKey) -> None:
        keys = self._keys.get(value, ())
        if isinstance(keys, dict):
            keys[key] = None
        elif key not in keys:
            self._keys[value] = (*keys, key) if len(keys) < FEW else dict.fromkeys((*keys, key))

    def _remove(self, value: str, key: ObjectKey) -> None:
        keys = self._keys[value]
        if isinstance(keys, dict):
            keys.pop(key, None)
        else:
            keys = self._keys[value] = tuple(each for each in keys if each != key)
        if not keys:
            del self._keys[value]


class _Table:
    """Objects of one resource, by namespace and name; of packed ones those that were used lately are unpacked.

    `recent` is that of all tables of a cache.
    """

    def __init__(self, recent: Recent[tuple[_Table, ObjectKey]]) -> None:
        self.namespaces: dict[str, dict[str, KubeObject | bytes]] = {}
        self.indexes: dict[str, _Index] = {}
        self.kept: Callable[[KubeObject], KubeObject] | None = None
        self.count = 0
        self.packer: Packer | None = None
        self._recent = recent

    def get(self, key: ObjectKey) -> KubeObject | None:
        observed = self.namespaces.get(key.namespace, {}).get(key.name)
        if self.packer is None or observed is None:
            return cast("KubeObject | None", observed)
        if isinstance(observed, bytes):
            obj, size = self.packer.unpack_sized(observed)
            self._use(key, obj, size, observed)
            return obj
        self._recent.touch((self, key))
        return observed

    def set(self, key: ObjectKey, obj: KubeObject | None) -> None:
        """Puts an object in, or takes it out where `obj` is None."""
        old = self.get(key)
        # All functions first: one that fails on an object must not leave half of the indexes changed.
        moves = [(index, index.values(old), index.values(obj)) for index in self.indexes.values()]
        for index, before, after in moves:
            index.replace(key, before, after)
        names = self.namespaces.setdefault(key.namespace, {})
        if obj is None:
            self.count -= names.pop(key.name, None) is not None
            self._recent.forget((self, key))
        else:
            self.count += old is None
            names[key.name] = obj
            if self.packer is not None:
                self._use(key, obj, size_of(obj))
        if not names:
            del self.namespaces[key.namespace]

    def objects(self) -> Iterator[KubeObject]:
        for namespace in self.namespaces:
            yield from self.objects_in(namespace)

    def objects_in(self, namespace: str) -> Iterator[KubeObject]:
        """Those that are packed stay so: a list of everything does not count as use."""
        for observed in self.namespaces.get(namespace, {}).values():
            yield self.packer.unpack(observed) if self.packer is not None and isinstance(observed, bytes) else observed  # type: ignore[misc]

    def _use(self, key: ObjectKey, obj: KubeObject, size: int, packed: bytes | None = None) -> None:
        self.namespaces[key.namespace][key.name] = obj
        for (table, idle), known in self._recent.use((self, key), size, packed):
            table._pack(idle, known)

    def _pack(self, key: ObjectKey, packed: bytes | None) -> None:
        names = self.namespaces[key.namespace]
        observed = names[key.name]
        if self.packer is not None and not isinstance(observed, bytes):
            names[key.name] = packed if packed is not None else self.packer.pack(observed)


_Slot: TypeAlias = tuple[str, ObjectKey]
"""Resource id and key."""


class OwnWrite(NamedTuple):
    """The API server's answer to a write of this service, or a word of STATE that contradicts one, by the version that it has.

    `due`: when the API server is to be asked what it has now, on the cache's clock.
    """

    resource: Resource
    version: Version
    due: float


OwnWrites: TypeAlias = list[tuple[ObjectKey, OwnWrite]]


class ObjectCache:
    """What a service knows of the cluster. Filled by `StateReader`, and by writers with what they have just written.

    `clock`: monotonic, in seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tables: dict[str, _Table] = {}
        self._recent: Recent[tuple[_Table, ObjectKey]] = Recent()
        self._listeners: list[Listener] = []
        self._on_leave: list[LeaveListener] = []
        self._deleted: Newest[str, bool] = Newest(REMEMBERED_DELETIONS)
        """uids of deleted objects -> whether a writer learned of the deletion ahead of STATE"""
        self._written: dict[_Slot, OwnWrite] = {}
        """what this service has written and STATE has not said yet"""
        self._under_way: Counter[_Slot] = Counter()
        """what this service is writing"""
        self._held: dict[_Slot, OwnWrite] = {}
        """words of STATE that are held back"""

    def get(self, resource: Resource, key: ObjectKey) -> KubeObject | None:
        """The object, or None. Read only."""
        table = self._tables.get(resource.id)
        return table.get(key) if table is not None else None

    def list(self, resource: Resource, namespace: str | None = None) -> Objects:
        """All objects of a resource, or those of one namespace. Read only."""
        table = self._tables.get(resource.id)
        if table is None:
            return []
        if namespace is None:
            return list(table.objects())
        return list(table.objects_in(namespace))

    def keys(self, resource: Resource, namespace: str | None = None) -> set[ObjectKey]:
        """Keys of all objects of a resource, or of those of one namespace."""
        table = self._tables.get(resource.id)
        if table is None:
            return set()
        chosen = table.namespaces if namespace is None else {namespace: table.namespaces.get(namespace, {})}
        return {ObjectKey(each, name) for each, names in chosen.items() for name in names}

    def namespaces(self) -> set[str]:
        """Namespaces that have objects of any resource."""
        return {each for table in self._tables.values() for each in table.namespaces}

    def count(self, resource: Resource) -> int:
        """How many objects of a resource there are."""
        table = self._tables.get(resource.id)
        return table.count if table is not None else 0

    def add_index(self, resource: Resource, name: str, function: IndexFunction) -> None:
        """Keeps objects findable by the values that `function` gives for them; objects already there are taken in."""
        table = self._table(resource)
        index = table.indexes[name] = _Index(function)
        for obj in table.objects():
            index.replace(key_of(obj), set(), index.values(obj))

    def keep_only(self, resource: Resource, kept: Callable[[KubeObject], KubeObject]) -> None:
        """Keeps of each object what `kept` gives of it, where many are large and little of them is read.

        Set before objects come in. Of the metadata at least name, namespace, uid and resourceVersion must stay.
        """
        self._table(resource).kept = kept

    def pack(self, *resources: Resource) -> None:
        """Keeps objects of resources packed but those used lately: of many objects, few are in use at a time.

        Set before objects come in. A list of all of them is slow.
        """
        for resource in resources:
            self._table(resource).packer = Packer()

    def has_index(self, resource: Resource, name: str) -> bool:
        """Whether there is an index of that name."""
        return name in self._table(resource).indexes

    def indexed(self, resource: Resource, name: str) -> Iterator[tuple[str, ObjectKey]]:
        """Values of an index, each with the key of an object that has it; KeyError where there is no such index."""
        yield from self._table(resource).indexes[name].all()

    def by_index(self, resource: Resource, name: str, value: str) -> Objects:
        """Objects for which an index's function gave the value; KeyError where there is no such index."""
        table = self._table(resource)
        # Most values have no objects: a graph has no children of most resources.
        if not (keys := table.indexes[name].keys(value)):
            return []
        objects = (table.get(key) for key in keys)
        return [obj for obj in objects if obj is not None]

    def keys_by_index(self, resource: Resource, name: str, value: str) -> Collection[ObjectKey]:
        """Keys of what `by_index` gives: packed objects stay so. Valid until the cache changes."""
        return self._table(resource).indexes[name].keys(value)

    def by_indexes(self, resources: Iterable[Resource], name: str, value: str) -> Iterator[tuple[Resource, KubeObject]]:
        """As `by_index`, of several resources that have an index of that name; each object with its resource."""
        for resource in resources:
            table = self._tables[resource.id]
            # An owner has no objects of most resources.
            for key in table.indexes[name].keys(value):
                if (obj := table.get(key)) is not None:
                    yield resource, obj

    def version(self, resource: Resource, key: ObjectKey) -> Version | None:
        """Version of the object that is held, or None."""
        obj = self.get(resource, key)
        return version_of(obj) if obj is not None else None

    def is_written(self, resource: Resource, key: ObjectKey) -> bool:
        """Whether an object is here by this service's own write, which has no answer yet, or STATE has not confirmed it."""
        slot = (resource.id, key)
        return slot in self._written or slot in self._under_way

    @contextmanager
    def writing(self, resource: Resource, key: ObjectKey) -> Iterator[None]:
        """An object is written while the block runs: STATE may have it before the answer is here."""
        slot = (resource.id, key)
        self._under_way[slot] += 1
        try:
            yield
        finally:
            self._under_way[slot] -= 1
            if not self._under_way[slot]:
                del self._under_way[slot]

    def put(self, resource: Resource, obj: KubeObject) -> bool:
        """Takes in the API server's answer to a write, unless it comes late: STATE was ahead of it, or said that it is gone."""
        key, version = key_of(obj), version_of(obj)
        held = self.version(resource, key)
        late = held is not None and version.resource_version <= held.resource_version
        if version.uid in self._deleted or late:
            return False
        self._written[resource.id, key] = OwnWrite(resource, version, self._clock() + GRACE)
        self._held.pop((resource.id, key), None)
        return self._set(resource, key, without_managed_fields(obj))

    def remove(self, resource: Resource, key: ObjectKey, uid: str) -> bool:
        """Takes out an object that the API server says is gone, if it is still the one of this uid."""
        self._deleted[uid] = True
        held = self.version(resource, key)
        if held is None or held.uid != uid:
            return False
        self._written.pop((resource.id, key), None)
        return self._set(resource, key, None)

    def confirm(self, resource: Resource, key: ObjectKey, version: Version) -> bool:
        """Takes in that STATE has this version of an object. Says whether it is what this service has written last.

        Then the API server's answer is here, and the message need not be read.
        """
        slot = (resource.id, key)
        written = self._written.get(slot)
        if written is None or written.version != version:
            return False
        del self._written[slot]
        self._held.pop(slot, None)
        return True

    def take(self, resource: Resource, key: ObjectKey, obj: KubeObject | None, version: Version) -> bool:
        """Takes in the next word of STATE about a name; None for the end of the object of `version`.

        Says whether anything changed. What is older than this service's own writes waits: see `overdue`.
        """
        slot = (resource.id, key)
        self._held.pop(slot, None)
        if self._is_behind(slot, obj, version):
            self._held[slot] = OwnWrite(resource, version, self._clock() + GRACE)
            return False
        return self._accept(resource, key, obj, version)

    def forget(self, resource: Resource, keys: Iterable[ObjectKey]) -> None:
        """Takes out objects that others work on now. Listeners of changes are not called: the objects are not gone."""
        table = self._table(resource)
        for key in keys:
            if (old := table.get(key)) is not None:
                table.set(key, None)
                self._notify_leave(resource, old)
            self._written.pop((resource.id, key), None)
            self._held.pop((resource.id, key), None)

    def overdue(self) -> OwnWrites:
        """What this service has written and STATE has not confirmed in time, and words about what it has deleted.

        Each is due again after another `GRACE`.
        """
        now = self._clock()
        late: OwnWrites = []
        # Where both are, the write is what is asked about.
        for slot, write in (self._held | self._written).items():
            if write.due <= now:
                kept = self._written if slot in self._written else self._held
                kept[slot] = write._replace(due=now + GRACE)
                late.append((slot[1], write))
        return late

    def correct(self, key: ObjectKey, write: OwnWrite, obj: KubeObject | None) -> bool:
        """Takes in what the API server has in place of what is overdue; None where it has nothing of that name.

        Says whether anything changed: nothing does where STATE or another write came meanwhile.
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
            # STATE has not caught up: what waited is older than what is there.
            return False
        if (
            not deleted
            and version.uid == write.version.uid
            and version.resource_version > write.version.resource_version
        ):
            return self.put(resource, obj)
        if version.uid == write.version.uid:
            log.warning("what was written is gone: the data store was set back", resource=resource.id, key=str(key))
        return self._accept(resource, key, obj, version)

    def _is_behind(self, slot: _Slot, obj: KubeObject | None, version: Version) -> bool:
        written = self._written.get(slot)
        if obj is not None and self._deleted.get(version.uid):
            return True
        # The end of what was written is final.
        ends = obj is None and written is not None and written.version.uid == version.uid
        return written is not None and not ends and version.resource_version < written.version.resource_version

    def _accept(self, resource: Resource, key: ObjectKey, obj: KubeObject | None, version: Version) -> bool:
        self._written.pop((resource.id, key), None)
        if obj is None:
            if version.uid:
                # A writer's word counts no longer.
                self._deleted[version.uid] = False
        else:
            self._deleted.pop(version.uid, None)
        return self._set(resource, key, obj)

    def _set(self, resource: Resource, key: ObjectKey, obj: KubeObject | None) -> bool:
        table = self._table(resource)
        # A key comes with texts of its own, and objects of one namespace are many.
        key = ObjectKey(sys.intern(key.namespace), key.name)
        old = table.get(key)
        if obj is not None and table.kept is not None:
            obj = table.kept(obj)
        if old == obj:
            return False
        if old is not None and obj is not None and version_of(old).uid != version_of(obj).uid:
            # Another object of its name: what is kept of the one before ends with it.
            self._set(resource, key, None)
            old = None
        table.set(key, obj)
        self._notify(resource, key, old, obj)
        if old is not None and obj is None:
            self._notify_leave(resource, old)
        return True

    def on_change(self, listener: Listener) -> None:
        """Calls back with (resource, key, old, new) after each change; `new` is None for an object that is gone.

        Of an object in whose place there is another of its name, first the end is reported, then the new one.
        """
        self._listeners.append(listener)

    def on_leave(self, listener: LeaveListener) -> None:
        """Calls back with (resource, object) for each object that is no longer in the cache, after listeners of changes.

        It is gone, another one of its name came, or another replica has it: what is kept because of it can go.
        """
        self._on_leave.append(listener)

    def memory(self) -> dict[str, _V]:
        """A dict for what a writer keeps of objects, by uid. The cache takes out what is in it of objects that leave."""
        memory: dict[str, _V] = {}
        self.on_leave(lambda _, obj: memory.pop(obj["metadata"]["uid"], None))
        return memory

    def _table(self, resource: Resource) -> _Table:
        table = self._tables.get(resource.id)
        if table is None:
            table = self._tables[resource.id] = _Table(self._recent)
        return table

    def _notify(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        for listener in self._listeners:
            try:
                listener(resource, key, old, new)
            except Exception:  # a listener's bug must not keep the others, or the cache, from going on
                log.exception("cache listener failed", resource=resource.id, key=str(key))

    def _notify_leave(self, resource: Resource, obj: KubeObject) -> None:
        for listener in self._on_leave:
            try:
                listener(resource, obj)
            except Exception:
                log.exception("cache listener failed", resource=resource.id, key=str(key_of(obj)))
