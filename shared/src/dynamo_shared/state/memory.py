"""Data that a writer keeps for each object of the cache."""

from collections.abc import Callable
from typing import TypeVar

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource, key_of, of

V = TypeVar("V")


class ObjectMemory(dict[str, V]):
    """Data by uid of an object. The cache that created it removes the entry of an object that leaves the cache.

    `get_by_uid` reads that cache.
    """

    def __init__(self, get_by_uid: Callable[[Resource, ObjectKey, str], KubeObject | None]) -> None:
        super().__init__()
        self._get_by_uid = get_by_uid

    def keep(self, obj: KubeObject, value: V) -> None:
        """Set the data of an object, unless it has left the cache, during a request: nothing would remove the entry."""
        uid = objects.uid(obj)
        if self._get_by_uid(of(obj), key_of(obj), uid) is not None:
            self[uid] = value
