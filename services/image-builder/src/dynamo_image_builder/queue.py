"""The builds of a namespace: a limited number runs at once, and the oldest waiting request is next. Reads the cache."""

import heapq
from collections.abc import Iterator

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, JOBS, ObjectKey, key_of
from dynamo_shared.runtime.routes import CacheChange, TaskRoute
from dynamo_shared.runtime.settings.image_builder import ImageBuilder
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state import ObjectCache

from dynamo_image_builder.status import is_waiting

_RUNNING, _WAITING = "running", "waiting"


def index(cache: ObjectCache) -> None:
    """Index running builds, and the requests that wait for them, by the namespace of the requests."""
    cache.add_index(JOBS, _RUNNING, lambda each: () if has_ended(each) else filter(None, [namespace_of(each)]))
    cache.add_index(DYNAMO_NIM_REQUESTS, _WAITING, lambda each: (objects.namespace(each),) if _waits(each) else ())


def routes(cache: ObjectCache, settings: ImageBuilder) -> tuple[TaskRoute, ...]:
    """A build that ends, or a request that stops waiting, may make room for the next requests."""

    def next_of(namespace: str) -> Iterator[Task]:
        for key in next_in_line(cache, namespace, settings):
            yield Task.of(DYNAMO_NIM_REQUESTS, key)

    def ends(change: CacheChange) -> bool:
        old, new = change.old, change.new
        return old is not None and not has_ended(old) and (new is None or has_ended(new))

    def leaves(change: CacheChange) -> bool:
        old, new = change.old, change.new
        return old is not None and _waits(old) and (new is None or not _waits(new))

    return (
        TaskRoute(JOBS, to=lambda change: next_of(namespace_of(change.obj)), when=ends),
        TaskRoute(DYNAMO_NIM_REQUESTS, to=lambda change: next_of(change.key.namespace), when=leaves),
    )


def running(cache: ObjectCache, namespace: str) -> frozenset[ObjectKey]:
    """Jobs of builds that requests of a namespace began, and that have not ended."""
    return frozenset(cache.keys_by_index(JOBS, _RUNNING, namespace))


def all_running(cache: ObjectCache) -> list[ObjectKey]:
    """Jobs of all builds that have not ended."""
    return [key for _, key in cache.indexed(JOBS, _RUNNING)]


def next_in_line(cache: ObjectCache, namespace: str, settings: ImageBuilder) -> Iterator[ObjectKey]:
    """The oldest waiting requests of a namespace, as many as may begin a build."""
    free = settings.builds_per_namespace - len(running(cache, namespace))
    if free > 0:
        waiting = cache.by_index(DYNAMO_NIM_REQUESTS, _WAITING, namespace)
        yield from map(key_of, heapq.nsmallest(free, waiting, key=_age))


def ahead(cache: ObjectCache, request: KubeObject) -> int:
    """The number of older waiting requests of the request's namespace."""
    waiting = cache.by_index(DYNAMO_NIM_REQUESTS, _WAITING, objects.namespace(request))
    return sum(_age(each) < _age(request) for each in waiting)


def has_ended(job: KubeObject) -> bool:
    """Whether a build's Job has ended."""
    return objects.is_true(job, "Complete") or objects.is_true(job, "Failed")


def namespace_of(job: KubeObject) -> str:
    """The namespace of the request that began a build; "" for Jobs of earlier releases."""
    return objects.labels(job).get(labels.IMAGE_NAMESPACE, "")


def _waits(request: KubeObject) -> bool:
    return is_waiting(request) and not objects.is_deleting(request)


def _age(request: KubeObject) -> tuple[str, str]:
    return objects.created_at(request), objects.name(request)
