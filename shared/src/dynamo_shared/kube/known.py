"""The last reported version of each object, so that a relist reports nothing twice and misses no deletion."""

from collections.abc import Container, Iterator, Mapping

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.text_table import TextTable


class Known(Mapping[ObjectKey, tuple[str, str]]):
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

    def others(self, present: Container[ObjectKey]) -> list[tuple[ObjectKey, str]]:
        """Keys and uids of known objects that are not in `present`."""
        known = ((_key(text), version) for text, version in self._versions.items())
        return [(key, _version(version)[0]) for key, version in known if key not in present]


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
