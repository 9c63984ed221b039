"""A cache as the pod-builder keeps it."""

from __future__ import annotations

from dynamo_pod_builder import children, name_waits
from dynamo_shared.state.cache import ObjectCache


def indexed() -> ObjectCache:
    """Empty, with the indexes that routes need."""
    cache = ObjectCache()
    children.index(cache)
    name_waits.index(cache)
    return cache
