"""All indexes of the cache: each module defines the indexes by which it searches."""

from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import (
    artifact_images,
    checkpoints,
    children,
    claims,
    cohorts,
    name_waits,
    node_labels,
    pods,
    surroundings,
)


def index(cache: ObjectCache) -> None:
    """Add all indexes to a cache."""
    for each in (artifact_images, checkpoints, children, claims, cohorts, name_waits, node_labels, pods, surroundings):
        each.index(cache)
