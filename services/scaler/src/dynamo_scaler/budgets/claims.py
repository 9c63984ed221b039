"""Graphs whose GPUs come from a ResourceClaim, or from a claim template: most changed claims belong to no graph."""

from functools import partial

from dynamo_shared.api import device_claims, objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENTS,
    PODS,
    RESOURCE_CLAIMS,
    ObjectKey,
    Resource,
)
from dynamo_shared.state import ObjectCache

from dynamo_scaler.adapters import pods


def index(cache: ObjectCache) -> None:
    """Keep graphs, and pods with claims of their own, findable by what they claim by."""
    for resource in device_claims.NAMED_BY:
        cache.add_index(DYNAMO_GRAPH_DEPLOYMENTS, resource.id, partial(device_claims.keys_named, resource))
    cache.add_index(PODS, RESOURCE_CLAIMS.id, _made_for)


def graphs_of(cache: ObjectCache, resource: Resource, key: ObjectKey) -> set[ObjectKey]:
    """Graphs whose GPUs a claim, or a claim template, determines."""
    graphs = set(cache.keys_by_index(DYNAMO_GRAPH_DEPLOYMENTS, resource.id, str(key)))
    if resource == RESOURCE_CLAIMS:
        graphs.update(map(pods.graph_of, cache.by_index(PODS, resource.id, str(key))))
    return graphs


def _made_for(pod: KubeObject) -> list[str]:
    made = device_claims.created_for(pod).values()
    return [str(ObjectKey(objects.namespace(pod), name)) for name in made]
