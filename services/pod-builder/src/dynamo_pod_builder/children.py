"""Whose child an object is, and which children are no longer wanted."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DESTINATION_RULES,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    POD_CLIQUE_SETS,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    VIRTUAL_SERVICES,
    ObjectKey,
    Resource,
)
from dynamo_shared.bus.cache import ObjectCache

from dynamo_pod_builder.applying import controller_of
from dynamo_pod_builder.status.workload import WORKLOADS

#: What graphs and components own, the resources that are indexed by their controller's uid.
OWNED: tuple[Resource, ...] = (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    *WORKLOADS,
    CONFIG_MAPS,
    INFERENCE_POOLS,
    JOBS,
    POD_CLIQUE_SETS,
    RESOURCE_CLAIM_TEMPLATES,
    PERSISTENT_VOLUME_CLAIMS,
    INGRESSES,
    VIRTUAL_SERVICES,
    HTTP_ROUTES,
    DESTINATION_RULES,
    SERVICES,
    SERVICE_ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
)
#: What the graphs of a namespace share, without an owner.
SHARED: tuple[Resource, ...] = (ROLE_BINDINGS, SERVICE_ACCOUNTS)
OWNER_INDEX = "owner-uid"


def index(cache: ObjectCache) -> None:
    """Index the cache by owner."""
    for resource in OWNED:
        cache.add_index(resource, OWNER_INDEX, _owner_uid)


def children(cache: ObjectCache, resource: Resource, owner: KubeObject) -> list[KubeObject]:
    """Objects of a resource that `owner` controls."""
    return cache.by_index(resource, OWNER_INDEX, owner["metadata"]["uid"])


def owned_by(owner: KubeObject, obj: KubeObject) -> bool:
    """Whether `owner` controls `obj`."""
    controller = controller_of(obj)
    return controller is not None and bool(controller["uid"] == owner["metadata"]["uid"])


def workload_of(cache: ObjectCache, component: KubeObject) -> KubeObject | None:
    """What runs the pods of a component deployment, under its name; None before there is any.

    While one that spans nodes takes the place of one that does not, or the other way round, the one that is wanted.
    """
    metadata = component["metadata"]
    key = ObjectKey(metadata["namespace"], metadata["name"])
    found = [workload for resource in _wanted_first(component) if (workload := cache.get(resource, key)) is not None]
    return next((workload for workload in found if owned_by(component, workload)), None)


def _wanted_first(component: KubeObject) -> tuple[Resource, ...]:
    multinode = component.get("spec", {}).get("multinode") or {}
    return tuple(reversed(WORKLOADS)) if multinode.get("nodeCount", 1) > 1 else WORKLOADS


def surplus(
    cache: ObjectCache, owner: KubeObject, wanted: Iterable[KubeObject], keep: Iterable[str] = ()
) -> list[KubeObject]:
    """Children of `owner` that are not among `wanted` and whose uid is not in `keep`."""
    names = {(resources.of(child).id, child["metadata"]["name"]) for child in wanted}
    kept = set(keep)
    return [
        child
        for resource in OWNED
        for child in children(cache, resource, owner)
        if (resource.id, child["metadata"]["name"]) not in names and child["metadata"]["uid"] not in kept
    ]


def _owner_uid(obj: KubeObject) -> Iterable[str]:
    controller = controller_of(obj)
    return (controller["uid"],) if controller else ()
