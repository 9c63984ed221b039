"""The unit of work of a controller."""

from typing import NamedTuple, Self

from dynamo_shared.api.resources import ObjectKey, Resource


class Task(NamedTuple):
    """One key of one reconciler. Replicas share tasks by their key."""

    concern: str
    """name of the reconciler; the label of its metrics"""
    key: ObjectKey
    """the object; without a namespace, the name is a namespace's"""

    def __str__(self) -> str:
        return f"{self.concern} {self.key}"

    @classmethod
    def of(cls, resource: Resource, key: ObjectKey) -> Self:
        """A task of the reconciler of a resource."""
        return cls(resource.plural, key)
