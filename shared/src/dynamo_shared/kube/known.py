"""The version of each object that was reported last, so that a relist reports nothing twice and misses no deletion."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource


class Known:
    """Key to (uid, resourceVersion); about 400 bytes an object."""

    def __init__(self) -> None:
        self._versions: dict[ObjectKey, tuple[str, str]] = {}
        self.versions: Mapping[ObjectKey, tuple[str, str]] = MappingProxyType(self._versions)

    def get(self, key: ObjectKey) -> tuple[str, str] | None:
        """Uid and resourceVersion that were reported last."""
        return self._versions.get(key)

    def remember(self, key: ObjectKey, uid: str, resource_version: str) -> None:
        """Record a version."""
        self._versions[key] = (uid, resource_version)

    def forget(self, key: ObjectKey) -> bool:
        """Record a deletion; False where the object was not known."""
        return self._versions.pop(key, None) is not None

    def others(self, present: set[ObjectKey]) -> list[tuple[ObjectKey, str]]:
        """Keys and uids of what is known and not among `present`."""
        return [(key, uid) for key, (uid, _version) in self._versions.items() if key not in present]


def vanished(resource: Resource, key: ObjectKey, uid: str, resource_version: str) -> KubeObject:
    """An object whose deletion was not observed: what is known of it."""
    metadata = {"name": key.name, "uid": uid, "resourceVersion": resource_version}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
