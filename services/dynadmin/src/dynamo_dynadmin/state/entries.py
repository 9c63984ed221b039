"""What a replica knows of one resource: the last message of each object, by the stream's sequence."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.state.messages import decode_object
from dynamo_shared.state.versions import Version
from typing_extensions import TypedDict

#: Deletions that are remembered for streams that are resumed. Older ones make a stream begin again.
DELETIONS = 10_000
#: Bytes of what they were, for each resource: one object has up to 1.5 MB.
DELETED_BYTES = 8 << 20


class _Metadata(TypedDict, total=False):
    name: str
    uid: str
    labels: dict[str, str] | None
    ownerReferences: list[dict[str, Any]] | None


class _Outline(TypedDict, total=False):
    metadata: _Metadata


_outline = msgspec.json.Decoder(_Outline).decode


@dataclass(slots=True)
class StoredObject:
    """An object as it was stored last, or its deletion (`payload` is empty then, and `last` what it was)."""

    key: ObjectKey
    sequence: int
    version: Version
    payload: bytes
    created: bool = False
    """whether this message made it known"""
    last: bytes = b""
    silent: bool = False
    """gone without a message: it has the sequence of one before, which readers may have already"""
    incarnation: str = ""
    """of the position that a reader has with this change, when it was offered"""
    _outline: KubeObject | None = None

    @property
    def deleted(self) -> bool:
        """Whether the object is gone."""
        return not self.payload

    @property
    def outline(self) -> KubeObject:
        """Of the object, also of one that is gone, the metadata by which it belongs to others: uid, name, labels, owners.

        Kept from the first time on: readers of a namespace ask for all of its objects, again and again.
        """
        if self._outline is None:
            try:
                self._outline = {"metadata": {}, **_outline(self.payload or self.last or b"{}")}
            except msgspec.DecodeError:
                self._outline = {"metadata": {}}
        return self._outline

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the object, also of one that is gone."""
        return self.outline["metadata"].get("labels") or {}

    @property
    def obj(self) -> KubeObject:
        """The object, which is not gone."""
        return decode_object(self.payload)

    def frame(self) -> bytes:
        """The object as JSON; of one that is gone, what it was, or at least its name."""
        if self.payload or self.last:
            return self.payload or self.last
        metadata = {"namespace": self.key.namespace, "name": self.key.name, "uid": self.version.uid}
        return msgspec.json.encode({"metadata": metadata})


class Entries:
    """Objects of one resource, by namespace and name; deletions for a while."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, StoredObject]] = {}
        self._deleted: OrderedDict[ObjectKey, StoredObject] = OrderedDict()
        self._deleted_bytes = 0
        self.forgotten = 0
        """sequence of the last deletion that is no longer remembered"""
        self.forgot_silent = False
        """whether one of them was without a message: no sequence says who has it already"""
        self.marked = False
        self.served = True
        self.synced = False
        self.unconfirmed: set[ObjectKey] = set()

    def take(self, key: ObjectKey, sequence: int, version: Version, payload: bytes) -> StoredObject | None:
        """A message; what it changed, None where it repeats what is known. The stream's order is the order."""
        self.unconfirmed.discard(key)
        names = self._namespaces.setdefault(key.namespace, {})
        held = names.get(key.name)
        if held is not None and payload and held.version == version and held.payload == payload:
            held.sequence = sequence
            return None
        if not payload:
            return self._remove(key, sequence, version)
        self._forget(key)
        entry = names[key.name] = StoredObject(key, sequence, version, payload, created=held is None)
        return entry

    def drop(self, key: ObjectKey, sequence: int) -> StoredObject | None:
        """An object that the stream has no longer."""
        held = self.get(key)
        return self._remove(key, sequence, held.version, silent=True) if held is not None else None

    def _remove(self, key: ObjectKey, sequence: int, version: Version, *, silent: bool = False) -> StoredObject | None:
        names = self._namespaces.get(key.namespace, {})
        held = names.pop(key.name, None)
        if not names:
            self._namespaces.pop(key.namespace, None)
        last = held.payload if held is not None else b""
        gone = StoredObject(key, sequence, version, b"", last=last, silent=silent)
        self._forget(key)
        self._deleted[key] = gone
        self._deleted_bytes += len(gone.last)
        while len(self._deleted) > DELETIONS or self._deleted_bytes > DELETED_BYTES:
            oldest = next(iter(self._deleted.values()))
            self._forget(oldest.key)
            self.forgotten = max(self.forgotten, oldest.sequence)
            self.forgot_silent = self.forgot_silent or oldest.silent
        return gone if held is not None else None

    def _forget(self, key: ObjectKey) -> None:
        """That an object was deleted, where it was."""
        if (gone := self._deleted.pop(key, None)) is not None:
            self._deleted_bytes -= len(gone.last)

    def forget_silent(self) -> None:
        """What was gone without a message: no one has a position of before, for whom it is remembered."""
        for key in [each.key for each in self._deleted.values() if each.silent]:
            self._forget(key)
        self.forgot_silent = False

    def forget_deletions(self) -> None:
        """Deletions have sequences of a stream that is lost."""
        self._deleted.clear()
        self._deleted_bytes = 0
        self.forgotten = 0
        self.forgot_silent = False

    def get(self, key: ObjectKey) -> StoredObject | None:
        """The object of a name."""
        return self._namespaces.get(key.namespace, {}).get(key.name)

    def of_namespace(self, namespace: str) -> list[StoredObject]:
        """Objects of a namespace, in order of their names."""
        names = self._namespaces.get(namespace, {})
        return [names[name] for name in sorted(names)]

    def all(self) -> Iterator[StoredObject]:
        """Every object."""
        for names in self._namespaces.values():
            yield from names.values()

    def namespaces(self) -> set[str]:
        """Namespaces with objects."""
        return set(self._namespaces)

    def objects(self) -> list[KubeObject]:
        """Every object, as Kubernetes has it."""
        return [each.obj for each in self.all()]

    def keys(self) -> set[ObjectKey]:
        """Names of all objects."""
        return {entry.key for entry in self.all()}

    def since(self, namespace: str, sequence: int) -> list[StoredObject]:
        """What changed in a namespace after a sequence, deletions included, in the stream's order.

        What vanished without a message is reported once more to those who may know it.
        """
        changed = [each for each in self.of_namespace(namespace) if each.sequence > sequence]
        changed += [
            each
            for each in self._deleted.values()
            if each.key.namespace == namespace and each.sequence > sequence - each.silent
        ]
        return sorted(changed, key=lambda each: each.sequence)
