"""The objects of one resource: by key, by the values of index functions, packed if they are seldom used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias, cast

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.state.packer import Form, Packer, Recent, encode

IndexFunction: TypeAlias = Callable[[KubeObject], Iterable[str]]

FEW = 8
"""Keys of one index value that are kept as a tuple at most: a dict takes 200 bytes, and most values have one key."""


class ObjectIndex:
    """Values of one index function, and the keys of the objects that have them."""

    def __init__(self, function: IndexFunction) -> None:
        self._function = function
        self._keys: dict[str, tuple[ObjectKey, ...] | dict[ObjectKey, None]] = {}

    def values(self, obj: KubeObject | None) -> set[str]:
        """The values of an object; none without an object."""
        return set(self._function(obj)) if obj is not None else set()

    def replace(self, key: ObjectKey, before: set[str], after: set[str]) -> None:
        """An object has the values `after`; it had `before`."""
        for value in before - after:
            self._remove(value, key)
        for value in after - before:
            self._add(value, key)

    def keys(self, value: str) -> Collection[ObjectKey]:
        """Keys of the objects with a value."""
        return self._keys.get(value, ())

    def all(self) -> Iterator[tuple[str, ObjectKey]]:
        """All values, each with the key of an object that has it."""
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


class ObjectRecords(NamedTuple):
    """What a function returned for each object."""

    function: Callable[[KubeObject], object]
    by_key: dict[ObjectKey, object]


class ObjectTable:
    """Objects of one resource, by namespace and name. If objects are packed, recently used ones are unpacked.

    `recent` is shared by all tables of a cache.
    """

    def __init__(self, recent: Recent[tuple[ObjectTable, ObjectKey]]) -> None:
        self.namespaces: dict[str, dict[str, KubeObject | bytes]] = {}
        self.indexes: dict[str, ObjectIndex] = {}
        self.records: dict[str, ObjectRecords] = {}
        self.kept: Callable[[KubeObject], KubeObject] | None = None
        self.count = 0
        self.packer: Packer | None = None
        self._recent = recent

    def get(self, key: ObjectKey) -> KubeObject | None:
        """The object, unpacked; None without it."""
        observed = self.namespaces.get(key.namespace, {}).get(key.name)
        if self.packer is None or observed is None:
            return cast("KubeObject | None", observed)
        if isinstance(observed, bytes):
            obj, size = self.packer.unpack_sized(observed)
            self._use(key, obj, Form(observed, size, packed=True))
            return obj
        self._recent.touch((self, key))
        return observed

    def set(self, key: ObjectKey, obj: KubeObject | None, content: bytes | None = None) -> None:
        """Add or replace an object; remove it if `obj` is None. `content`: the object as JSON, if known."""
        old = self.get(key)
        # Call all index functions first: if one fails on an object, no index may be changed by half.
        moves = [(index, index.values(old), index.values(obj)) for index in self.indexes.values()]
        recorded = [(each, each.function(obj)) for each in self.records.values()] if obj is not None else []
        for index, before, after in moves:
            index.replace(key, before, after)
        for records, record in recorded:
            records.by_key[key] = record
        names = self.namespaces.setdefault(key.namespace, {})
        if obj is None:
            self.count -= names.pop(key.name, None) is not None
            self._recent.forget((self, key))
            for each in self.records.values():
                each.by_key.pop(key, None)
        else:
            self.count += old is None
            names[key.name] = obj
            if self.packer is not None:
                self._use(key, obj, Form.of_json(encode(obj) if content is None else content))
        if not names:
            del self.namespaces[key.namespace]

    def objects(self) -> Iterator[KubeObject]:
        """All objects. They stay packed: a list of all does not count as use."""
        for namespace in self.namespaces:
            yield from self.objects_in(namespace)

    def objects_in(self, namespace: str) -> Iterator[KubeObject]:
        """All objects of a namespace, the same way."""
        for observed in self.namespaces.get(namespace, {}).values():
            yield self.packer.unpack(observed) if self.packer is not None and isinstance(observed, bytes) else observed  # type: ignore[misc]

    def _use(self, key: ObjectKey, obj: KubeObject, form: Form) -> None:
        self.namespaces[key.namespace][key.name] = obj
        for (table, idle), known in self._recent.use((self, key), form):
            table.pack(idle, known)

    def pack(self, key: ObjectKey, form: Form) -> None:
        """Pack an object that was not used recently."""
        names = self.namespaces[key.namespace]
        if self.packer is not None and not isinstance(names[key.name], bytes):
            names[key.name] = form.content if form.packed else self.packer.pack(form.content)
