"""What a controller is wired with: which tasks a change asks for, how soon, and what reconciles them."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.runtime.workqueue import Result


class CacheChange(NamedTuple):
    """An object is created (`old` is None), changed, or deleted (`new` is None)."""

    resource: Resource
    key: ObjectKey
    old: KubeObject | None
    new: KubeObject | None

    @property
    def obj(self) -> KubeObject:
        """The object, as it was last where it is deleted."""
        return self.new or self.old or {}

    @property
    def gone(self) -> KubeObject | None:
        """The object that is deleted."""
        return self.old if self.new is None else None

    @property
    def alters(self) -> bool:
        """Whether the object was there before, and is there now."""
        return self.old is not None and self.new is not None


def itself(change: CacheChange) -> Iterable[Task]:
    """Reconcile the object that changed."""
    return (Task.of(change.resource, change.key),)


@dataclass(frozen=True, slots=True)
class TaskRoute:
    """The tasks that follow from a change of a resource."""

    resource: Resource
    to: Callable[[CacheChange], Iterable[Task]] = itself
    when: Callable[[CacheChange], bool] = lambda _: True
    after: float | Callable[[CacheChange], float] = 0.0
    """Seconds that a task waits for others that come together with it; asked once for a change that has tasks."""

    def tasks(self, change: CacheChange) -> Iterable[tuple[Task, float]]:
        """The tasks of a change, each with its delay in seconds."""
        if not self.when(change) or not (tasks := tuple(self.to(change))):
            return ()
        after = self.after(change) if callable(self.after) else self.after
        return [(task, after) for task in tasks]


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Reconciles the keys of one concern. An exception is retried with back-off."""

    reconcile: Callable[[ObjectKey], Awaitable[Result]]
    every: Callable[[], Iterable[ObjectKey]]
    """All keys there are: at the start, on a gained partition, and now and then."""
    urgent_workers: int = 0
    """Workers of its own, next to those that do all; with any, its tasks go before those of others."""
