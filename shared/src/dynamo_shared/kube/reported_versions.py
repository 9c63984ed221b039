"""The last reported version of each object, so that a relist reports nothing twice and misses no deletion."""

import asyncio
from collections.abc import Container, Iterator, Mapping

from dynamo_shared.aio import Pauses
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.text_table import TextTable

_AT_A_TIME = 1000
"""Objects that are compared before other tasks run: there may be hundreds of thousands."""


class ReportedVersions(Mapping[ObjectKey, tuple[str, str]]):
    """Key to (uid, resourceVersion), stored as one text for each object."""

    def __init__(self) -> None:
        self._versions = TextTable()

    def __getitem__(self, key: ObjectKey) -> tuple[str, str]:
        if (text := self._versions.get(_text(key))) is None:
            raise KeyError(key)
        return _version(text)

    def __iter__(self) -> Iterator[ObjectKey]:
        return (_key(text) for text, _ in self._versions.items())

    def __len__(self) -> int:
        return len(self._versions)

    def remember(self, key: ObjectKey, uid: str, resource_version: str) -> None:
        """Record a version."""
        self._versions.set(_text(key), f"{uid} {resource_version}")

    def forget(self, key: ObjectKey) -> bool:
        """Record a deletion; False if the object was not known."""
        return self._versions.pop(_text(key))

    async def others(self, present: Container[ObjectKey]) -> list[tuple[ObjectKey, str]]:
        """Keys and uids of known objects that are not in `present`. Other tasks run meanwhile."""
        others: list[tuple[ObjectKey, str]] = []
        pauses = Pauses(_AT_A_TIME)
        for text, version in self._versions.items():
            key = _key(text)
            if key not in present:
                others.append((key, _version(version)[0]))
            if pauses.due():
                await asyncio.sleep(0)
        return others


def _key(text: str) -> ObjectKey:
    namespace, _, name = text.partition("/")
    return ObjectKey(namespace, name)


def _version(text: str) -> tuple[str, str]:
    uid, _, version = text.rpartition(" ")
    return uid, version


def _text(key: ObjectKey) -> str:
    """Joined by a slash, which neither part contains."""
    return f"{key.namespace}/{key.name}"


def vanished(resource: Resource, key: ObjectKey, uid: str, resource_version: str) -> KubeObject:
    """The known fields of an object whose deletion was not observed."""
    metadata = {"name": key.name, "uid": uid, "resourceVersion": resource_version}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return {**resource.type_meta, "metadata": metadata}
