"""GPUs that components claim instead of counting them, and which objects a change of a claim triggers."""

from collections.abc import Callable
from functools import partial

from dynamo_shared.api import device_claims, gpus, objects
from dynamo_shared.api.containers import main_container
from dynamo_shared.api.device_claims import ClaimedGpus, Lookup
from dynamo_shared.api.gpus import GpuShape
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ObjectKey,
    Resource,
)
from dynamo_shared.api.role_templates import templates
from dynamo_shared.runtime.routes import CacheChange, TaskRoute, indexed
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder.render.config import NO_CLAIMS, RoleClaims

#: Gets an object of a namespace; None if it does not exist.
Get = Callable[[Resource, ObjectKey], KubeObject | None]


def claimed(get: Get, namespace: str, component: KubeObject) -> RoleClaims:
    """GPUs that the main containers of a multi-node component claim; nothing is read for other components."""
    if component.get("multinode") is None:
        return NO_CLAIMS
    template_of, claim_of = _lookups(get, namespace)

    def of_pods(template: KubeObject) -> ClaimedGpus:
        main = main_container(template) or {}
        counted = device_claims.of_container(template.get("spec") or {}, main, template_of, claim_of)
        return ClaimedGpus(counted.own + sum(counted.shared.values()), unknown=counted.unknown)

    serving, *others = (of_pods(template) for template, _ in templates(component))
    return RoleClaims(serving, *(others or (serving,)))


def gpu_shape(get: Get, namespace: str, component: KubeObject) -> GpuShape | None:
    """GPUs that an engine and a replica of a component request; None if a claim does not say how many."""
    return gpus.shape(component, *_lookups(get, namespace))


def _lookups(get: Get, namespace: str) -> tuple[Lookup, Lookup]:
    """Functions that read ResourceClaimTemplates and ResourceClaims of a namespace by name."""

    def find(resource: Resource) -> Lookup:
        return lambda name: get(resource, ObjectKey(namespace, name))

    return find(RESOURCE_CLAIM_TEMPLATES), find(RESOURCE_CLAIMS)


def index(cache: ObjectCache) -> None:
    """Index graphs and component deployments by the claims, and the claim templates, that their pods name."""
    for resource in (DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS):
        for named in device_claims.NAMED_BY:
            cache.add_index(resource, named.id, partial(device_claims.keys_named, named))


def routes(cache: ObjectCache) -> tuple[TaskRoute, ...]:
    """A changed claim or claim template triggers the objects whose pods name it."""
    users = DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS
    return tuple(
        TaskRoute(each, to=indexed(cache, each.id, *users), when=_request_changed) for each in device_claims.NAMED_BY
    )


def _request_changed(change: CacheChange) -> bool:
    """Whether the request changed, not only its allocation. Claims of one pod are ignored: no pod template names them."""
    asks = (change.old or {}).get("spec") != (change.new or {}).get("spec")
    return asks and (objects.controller_of(change.obj) or {}).get("kind") != PODS.kind
