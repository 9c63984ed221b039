"""A cache as the pod-builder keeps it, and the routes over it."""

from __future__ import annotations

from dynamo_pod_builder import children, name_waits
from dynamo_pod_builder.routing import routes
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.runtime.routes import TaskRoute
from dynamo_shared.state.cache import ObjectCache

#: What progress waits for more of it, here: another number than all others. Seconds.
PROGRESS = 0.25


def indexed() -> ObjectCache:
    """Empty, with the indexes that routes need."""
    cache = ObjectCache()
    children.index(cache)
    name_waits.index(cache)
    return cache


def routes_of(cache: ObjectCache) -> tuple[TaskRoute, ...]:
    """The pod-builder's routes, at a time when little happens."""
    return routes(cache, Debounce(lambda: 0.0), lambda _resource, _key: PROGRESS)
