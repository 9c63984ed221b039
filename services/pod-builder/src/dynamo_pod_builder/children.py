"""Whose child an object is, and which children are no longer wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from dynamo_shared.bus.cache import ObjectCache

from dynamo_pod_builder.applying import controller_of

KubeObject = dict[str, Any]

#: What graphs and components own, the resources that are indexed by their controller's uid.
OWNED: tuple[Resource, ...] = (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DEPLOYMENTS,
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
