"""The tables of a controller: which tasks follow from a change, after which delay, and what reconciles them."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.runtime.workqueue import Result
from dynamo_shared.state.cache import ObjectCache


class CacheChange(NamedTuple):
    """An object is created (`old` is None), changed, or deleted (`new` is None)."""

    resource: Resource
    key: ObjectKey
    old: KubeObject | None
    new: KubeObject | None

    @property
    def obj(self) -> KubeObject:
        """The object; after a deletion, its last version."""
        return self.new or self.old or {}

    @property
    def gone(self) -> KubeObject | None:
        """The deleted object, or None."""
        return self.old if self.new is None else None

    @property
    def alters(self) -> bool:
        """Whether the object existed before and still exists."""
        return self.old is not None and self.new is not None


def itself(change: CacheChange) -> Iterable[Task]:
    """Reconcile the object that changed."""
    return (Task.of(change.resource, change.key),)


def namespace_of(change: CacheChange) -> str:
    """The namespace of the object that changed."""
    return change.key.namespace


def indexed(
    cache: ObjectCache,
    index: str,
    *resources: Resource,
    by: Callable[[CacheChange], str] = lambda change: str(change.key),
) -> Callable[[CacheChange], Iterable[Task]]:
    """Reconcile the objects that an index has under a value: the key of the object that changed, or `by`."""
    return lambda change: (
        Task.of(each, key) for each in resources for key in cache.keys_by_index(each, index, by(change))
    )


def differs(part: Callable[[KubeObject], object]) -> Callable[[CacheChange], bool]:
    """Whether an object is created or deleted, or this part of it changes."""
    return lambda change: change.old is None or change.new is None or part(change.old) != part(change.new)


@dataclass(frozen=True, slots=True)
class TaskRoute:
    """The tasks of a change of a resource."""

    resource: Resource
    to: Callable[[CacheChange], Iterable[Task]] = itself
    when: Callable[[CacheChange], bool] = lambda _: True
    after: float | Callable[[CacheChange], float] = 0.0
    """Seconds for which a task waits for others of the same burst; evaluated once per change with tasks"""

    def tasks(self, change: CacheChange) -> Iterable[tuple[Task, float]]:
        """The tasks of a change, each with its delay in seconds."""
        if not self.when(change) or not (tasks := tuple(self.to(change))):
            return ()
        after = self.after(change) if callable(self.after) else self.after
        return [(task, after) for task in tasks]


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Reconciles the keys of one concern. After an exception it retries with back-off."""

    reconcile: Callable[[ObjectKey], Awaitable[Result]]
    every: Callable[[], Iterable[ObjectKey]]
    """all keys: used at the start, for a gained partition, and at the resync interval"""
    urgent_workers: int = 0
    """Workers reserved for it, in addition to the shared ones; if there are any, its tasks precede those of others."""
