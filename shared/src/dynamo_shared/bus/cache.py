"""The object cache: the last known state of every object a service reads, with indexes.

Objects are plain dicts and shared, not copied: whoever gets one reads it and never writes into it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import structlog

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource, key_of
from dynamo_shared.bus.versions import Version, is_newer, version_of

Objects: TypeAlias = list[KubeObject]
IndexFunction: TypeAlias = Callable[[KubeObject], Iterable[str]]
Listener: TypeAlias = Callable[[Resource, ObjectKey, KubeObject | None, KubeObject | None], None]

REMEMBERED_DELETIONS = 10_000
"""Uids of deleted objects that are remembered, so that a late answer to a write does not bring one back to life."""

log = structlog.get_logger("dynamo.bus.cache")


class _Index:
    """Values of one index function, and which objects have them."""

    def __init__(self, function: IndexFunction) -> None:
        self._function = function
        self._keys: dict[str, dict[ObjectKey, None]] = {}

    def replace(self, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        before = set(self._function(old)) if old is not None else set()
        after = set(self._function(new)) if new is not None else set()
        for value in before - after:
            keys = self._keys[value]
            keys.pop(key, None)
            if not keys:
                del self._keys[value]
        for value in after - before:
            self._keys.setdefault(value, {})[key] = None

    def keys(self, value: str) -> Iterable[ObjectKey]:
        return self._keys.get(value, ())


class _Table:
    """Objects of one resource, by namespace and name."""

    def __init__(self) -> None:
        self.namespaces: dict[str, dict[str, KubeObject]] = {}
        self.indexes: dict[str, _Index] = {}
        self.kept: Callable[[KubeObject], KubeObject] | None = None
        self.count = 0

    def get(self, key: ObjectKey) -> KubeObject | None:
        return self.namespaces.get(key.namespace, {}).get(key.name)

    def set(self, key: ObjectKey, obj: KubeObject | None) -> None:
        """Puts an object in, or takes it out where `obj` is None."""
        names = self.namespaces.setdefault(key.namespace, {})
        old = names.get(key.name)
        for index in self.indexes.values():
            index.replace(key, old, obj)
        if obj is None:
            self.count -= names.pop(key.name, None) is not None
        else:
            self.count += old is None
            names[key.name] = obj
        if not names:
            del self.namespaces[key.namespace]

    def objects(self) -> Iterator[KubeObject]:
        for names in self.namespaces.values():
            yield from names.values()


class ObjectCache:
    """What a service knows of the cluster. Filled by `StateReader`, and by writers with what they have just written."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}
        self._listeners: list[Listener] = []
        self._deleted: OrderedDict[str, None] = OrderedDict()

    def get(self, resource: Resource, key: ObjectKey) -> KubeObject | None:
        """The object, None where there is none. Read only."""
        table = self._tables.get(resource.id)
        return table.get(key) if table is not None else None

    def list(self, resource: Resource, namespace: str | None = None) -> Objects:
        """All objects of a resource, or those of one namespace. Read only."""
        table = self._tables.get(resource.id)
        if table is None:
            return []
        if namespace is None:
            return list(table.objects())
        return list(table.namespaces.get(namespace, {}).values())

    def keys(self, resource: Resource) -> set[ObjectKey]:
        """Keys of all objects of a resource."""
        table = self._tables.get(resource.id)
        if table is None:
            return set()
        return {ObjectKey(namespace, name) for namespace, names in table.namespaces.items() for name in names}

    def count(self, resource: Resource) -> int:
        """How many objects of a resource there are."""
        table = self._tables.get(resource.id)
        return table.count if table is not None else 0

    def add_index(self, resource: Resource, name: str, function: IndexFunction) -> None:
        """Keeps objects findable by the values that `function` gives for them; objects already there are taken in."""
        table = self._table(resource)
        index = table.indexes[name] = _Index(function)
        for obj in table.objects():
            index.replace(key_of(obj), None, obj)

    def keep_only(self, resource: Resource, kept: Callable[[KubeObject], KubeObject]) -> None:
        """Keeps of each object what `kept` gives of it, where many are large and little of them is read.

        Set before objects come in. Of the metadata at least name, namespace, uid and resourceVersion must stay.
        """
        self._table(resource).kept = kept

    def by_index(self, resource: Resource, name: str, value: str) -> Objects:
        """Objects for which an index's function gave the value; KeyError where there is no such index."""
        table = self._table(resource)
        found = (table.get(key) for key in table.indexes[name].keys(value))
        return [obj for obj in found if obj is not None]

    def version(self, resource: Resource, key: ObjectKey) -> Version | None:
        """Version of the object that is held, None where there is none."""
        obj = self.get(resource, key)
        return version_of(obj) if obj is not None else None

    def put(self, resource: Resource, obj: KubeObject) -> bool:
        """Takes an object in unless it is not newer than the one that is held, or known to be deleted."""
        key, version = key_of(obj), version_of(obj)
        table = self._table(resource)
        old = table.get(key)
        if version.uid in self._deleted or (old is not None and not is_newer(version, version_of(old))):
            return False
        if table.kept is not None:
            obj = table.kept(obj)
        table.set(key, obj)
        self._tell(resource, key, old, obj)
        return True

    def remove(self, resource: Resource, key: ObjectKey, uid: str = "", resource_version: int = 0) -> bool:
        """Takes an object out. Of a uid: only that one, or an older one of the same name (by resourceVersion)."""
        if uid:
            self._deleted[uid] = None
            self._deleted.move_to_end(uid)
            if len(self._deleted) > REMEMBERED_DELETIONS:
                self._deleted.popitem(last=False)
        table = self._table(resource)
        old = table.get(key)
        if old is None:
            return False
        held = version_of(old)
        if uid and held.uid != uid and held.resource_version >= resource_version:
            return False
        table.set(key, None)
        self._tell(resource, key, old, None)
        return True

    def on_change(self, listener: Listener) -> None:
        """Calls back with (resource, key, old, new) after each change; `new` is None for an object that is gone."""
        self._listeners.append(listener)

    def _table(self, resource: Resource) -> _Table:
        return self._tables.setdefault(resource.id, _Table())

    def _tell(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        for listener in self._listeners:
            try:
                listener(resource, key, old, new)
            except Exception:  # a listener's bug must not keep the others, or the cache, from going on
                log.exception("cache listener failed", resource=resource.id, key=str(key))
