"""A cache with the pod-builder's indexes, and the routes over it."""

import time
from collections.abc import Callable
from typing import Any

from dynamo_pod_builder import indexes
from dynamo_pod_builder.render.access.pull_secrets import NO_PULL_SECRETS
from dynamo_pod_builder.routing import routes
from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import Resource
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.runtime.routes import TaskRoute
from dynamo_shared.state.cache import ObjectCache

#: The debounce of progress in these tests: a number that is not used otherwise. Seconds.
PROGRESS = 0.25


def indexed(
    *observed: KubeObject, of: Resource | None = None, clock: Callable[[], float] = time.monotonic
) -> ObjectCache:
    """A cache with all indexes and these objects; `of` is their resource if they have no kind."""
    cache = ObjectCache(clock=clock)
    indexes.index(cache)
    for obj in observed:
        cache.put(of or resources.of(obj), obj)
    return cache


class NoSecrets:
    """Pull secrets of namespaces that have none."""

    async def of(self, _namespace: str) -> Any:
        return NO_PULL_SECRETS


def routes_of(cache: ObjectCache) -> tuple[TaskRoute, ...]:
    """The pod-builder's routes at a time of few changes."""
    return routes(cache, Debounce(lambda: 0.0), lambda _resource, _key: PROGRESS)
