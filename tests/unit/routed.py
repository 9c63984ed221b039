"""What follows from a change, by a service's routes."""

from collections.abc import Iterable

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.runtime.routes import CacheChange, TaskRoute
from dynamo_shared.runtime.tasks import Task


def routed(
    routes: Iterable[TaskRoute], resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None
) -> list[tuple[Task, float]]:
    """Tasks with their delays, in the order in which they are asked for."""
    change = CacheChange(resource, key, old, new)
    return [each for route in routes if route.resource == resource for each in route.tasks(change)]


def tasks_of(
    routes: Iterable[TaskRoute], resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None
) -> list[Task]:
    """The tasks alone."""
    return [task for task, _ in routed(routes, resource, key, old, new)]
