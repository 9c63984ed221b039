"""The version of each object that was reported last, so that a relist reports nothing twice and misses no deletion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource


class Known(Mapping[ObjectKey, tuple[str, str]]):
    """Key to (uid, resourceVersion); about 250 bytes an object, as texts: tuples of texts take twice as much."""

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}

    def __getitem__(self, key: ObjectKey) -> tuple[str, str]:
        uid, _, version = self._versions[_text(key)].rpartition(" ")
        return uid, version

    def __iter__(self) -> Iterator[ObjectKey]:
        for text in self._versions:
            namespace, _, name = text.partition("/")
            yield ObjectKey(namespace, name)

    def __len__(self) -> int:
        return len(self._versions)

    def remember(self, key: ObjectKey, uid: str, resource_version: str) -> None:
        """Record a version."""
        self._versions[_text(key)] = f"{uid} {resource_version}"

    def forget(self, key: ObjectKey) -> bool:
        """Record a deletion; False where the object was not known."""
        return self._versions.pop(_text(key), None) is not None

    def others(self, present: Set[ObjectKey]) -> list[tuple[ObjectKey, str]]:
        """Keys and uids of what is known and not among `present`."""
        return [(key, self[key][0]) for key in self if key not in present]


def _text(key: ObjectKey) -> str:
    """Neither part has a slash."""
    return f"{key.namespace}/{key.name}"


def vanished(resource: Resource, key: ObjectKey, uid: str, resource_version: str) -> KubeObject:
    """An object whose deletion was not observed: what is known of it."""
    metadata = {"name": key.name, "uid": uid, "resourceVersion": resource_version}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
