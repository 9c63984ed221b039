"""Data that a writer keeps for each object of the cache."""

from collections.abc import Callable
from typing import TypeVar

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource, key_of, of

V = TypeVar("V")


class ObjectMemory(dict[str, V]):
    """Data by uid of an object. The cache that created it removes the entry of an object that leaves the cache.

    `get_object` reads that cache.
    """

    def __init__(self, get_object: Callable[[Resource, ObjectKey], KubeObject | None]) -> None:
        super().__init__()
        self._get_object = get_object

    def keep(self, obj: KubeObject, value: V) -> None:
        """Set the data of an object, if it is still in the cache: it may have left during a request, and then nothing
        would remove the entry.
        """
        known = self._get_object(of(obj), key_of(obj))
        if known is not None and objects.uid(known) == objects.uid(obj):
            self[objects.uid(obj)] = value
