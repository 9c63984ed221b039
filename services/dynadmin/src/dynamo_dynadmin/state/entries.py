"""A replica's objects of one resource: the last message of each object, with its stream sequence."""

import asyncio
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

#: Deletions that are remembered for resumed streams. A stream that misses an older one must begin again.
DELETIONS = 10_000
#: Bytes of the deleted objects, for each resource: one object has up to 1.5 MB.
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
    """The last stored state of an object, or its deletion (then `payload` is empty, and `last` is the last state)."""

    key: ObjectKey
    sequence: int
    version: Version
    payload: bytes
    created: bool = False
    """whether this message introduced the object"""
    last: bytes = b""
    silent: bool = False
    """deleted without a message: its sequence is of an earlier message, which readers may already have"""
    incarnation: str = ""
    """incarnation of a reader's position with this change, when the change was offered"""
    _outline: KubeObject | None = None

    @property
    def deleted(self) -> bool:
        """Whether the object is deleted."""
        return not self.payload

    @property
    def outline(self) -> KubeObject:
        """The object's metadata that relate it to others, also of a deleted object: uid, name, labels, owners.

        Cached: readers of a namespace request all of its objects repeatedly.
        """
        if self._outline is None:
            try:
                self._outline = {"metadata": {}, **_outline(self.payload or self.last or b"{}")}
            except msgspec.DecodeError:
                self._outline = {"metadata": {}}
        return self._outline

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the object, also of a deleted one."""
        return self.outline["metadata"].get("labels") or {}

    @property
    def obj(self) -> KubeObject:
        """The object, which must not be deleted."""
        return decode_object(self.payload)

    def frame(self) -> bytes:
        """The object as JSON; for a deleted object, its last state, or at least its name."""
        if self.payload or self.last:
            return self.payload or self.last
        metadata = {"namespace": self.key.namespace, "name": self.key.name, "uid": self.version.uid}
        return msgspec.json.encode({"metadata": metadata})


class Entries:
    """Objects of one resource, by namespace and name; recent deletions."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, StoredObject]] = {}
        self._deleted: OrderedDict[ObjectKey, StoredObject] = OrderedDict()
        self._deleted_bytes = 0
        self.forgotten = 0
        """sequence of the last forgotten deletion"""
        self.forgot_silent = False
        """whether a forgotten deletion had no message: then no sequence shows which readers have it"""
        self.marked = False
        self.served = True
        """whether the cluster serves the resource"""
        self.synced = False
        """whether all objects are known"""
        self.unconfirmed: set[ObjectKey] = set()

    def take(self, key: ObjectKey, sequence: int, version: Version, payload: bytes) -> StoredObject | None:
        """Store a message. Returns the change, or None if the message repeats the stored state. The stream decides the
        order.
        """
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
        """Remove an object that the stream no longer has."""
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
        """Forget the deletion of an object, if any."""
        if (gone := self._deleted.pop(key, None)) is not None:
            self._deleted_bytes -= len(gone.last)

    def forget_silent(self) -> None:
        """Forget deletions without a message: no reader has an earlier position that needs them."""
        for key in [each.key for each in self._deleted.values() if each.silent]:
            self._forget(key)
        self.forgot_silent = False

    def forget_deletions(self) -> None:
        """Forget all deletions: their sequences are of a lost stream."""
        self._deleted.clear()
        self._deleted_bytes = 0
        self.forgotten = 0
        self.forgot_silent = False

    def get(self, key: ObjectKey) -> StoredObject | None:
        """The object of a name."""
        return self._namespaces.get(key.namespace, {}).get(key.name)

    def of_namespace(self, namespace: str) -> list[StoredObject]:
        """Objects of a namespace, ordered by name."""
        names = self._namespaces.get(namespace, {})
        return [names[name] for name in sorted(names)]

    def all(self) -> Iterator[StoredObject]:
        """Every object."""
        for names in self._namespaces.values():
            yield from names.values()

    def namespaces(self) -> set[str]:
        """Namespaces with objects."""
        return set(self._namespaces)

    async def objects(self) -> list[KubeObject]:
        """Every object, as Kubernetes has it. Other requests get a turn between them: there may be ten thousand."""
        decoded = []
        for each in list(self.all()):
            decoded.append(each.obj)
            await asyncio.sleep(0)
        return decoded

    def keys(self) -> set[ObjectKey]:
        """Names of all objects."""
        return {entry.key for entry in self.all()}

    def since(self, namespace: str, sequence: int) -> list[StoredObject]:
        """Changes in a namespace after a sequence, including deletions, in the stream's order.

        Deletions without a message are reported once more to readers that may already know them.
        """
        changed = [each for each in self.of_namespace(namespace) if each.sequence > sequence]
        changed += [
            each
            for each in self._deleted.values()
            if each.key.namespace == namespace and each.sequence > sequence - each.silent
        ]
        return sorted(changed, key=lambda each: each.sequence)
