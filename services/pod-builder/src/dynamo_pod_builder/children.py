"""The children of an owner, and which of them are no longer desired."""

from collections.abc import Iterable, Mapping

from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder.co_owners import owners_of
from dynamo_pod_builder.render import names
from dynamo_pod_builder.status.workload import WORKLOADS

#: Resources that graphs and components own, indexed by the uid of their owner.
OWNED: tuple[Resource, ...] = (
    resources.DYNAMO_COMPONENT_DEPLOYMENTS,
    resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    *WORKLOADS,
    resources.CONFIG_MAPS,
    resources.INFERENCE_POOLS,
    resources.JOBS,
    resources.POD_CLIQUE_SETS,
    resources.RESOURCE_CLAIM_TEMPLATES,
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.INGRESSES,
    resources.VIRTUAL_SERVICES,
    resources.HTTP_ROUTES,
    resources.DESTINATION_RULES,
    resources.SERVICES,
    resources.SERVICE_ACCOUNTS,
    resources.ROLES,
    resources.ROLE_BINDINGS,
)
#: Written first. If the account of a Deployment is missing, its pods are refused, and retried only slowly; and claims
#: that the previous template makes would request the previous GPUs.
_FIRST = frozenset({resources.SERVICE_ACCOUNTS, resources.RESOURCE_CLAIM_TEMPLATES})
#: Resources that the graphs of a namespace share; they have no owner.
SHARED: tuple[Resource, ...] = (resources.ROLE_BINDINGS, resources.ROLES, resources.SERVICE_ACCOUNTS)
#: Resources that Grove creates from a PodCliqueSet, which owns them.
OF_SETS: tuple[Resource, ...] = (resources.POD_CLIQUES, resources.POD_CLIQUE_SCALING_GROUPS)
OWNER_INDEX = "owner-uid"


def index(cache: ObjectCache) -> None:
    """Index the cache by owner."""
    for resource in (*OWNED, *OF_SETS):
        cache.add_index(resource, OWNER_INDEX, _owner_uid)


def children(cache: ObjectCache, resource: Resource, owner: KubeObject) -> list[KubeObject]:
    """Objects of a resource that `owner` owns."""
    return cache.by_index(resource, OWNER_INDEX, objects.uid(owner))


def children_of(cache: ObjectCache, owner: KubeObject) -> dict[tuple[str, str], KubeObject]:
    """All objects that `owner` owns, by id of the resource and name."""
    owned = cache.by_indexes(OWNED, OWNER_INDEX, objects.uid(owner))
    return {(resource.id, objects.name(child)): child for resource, child in owned}


def graph_uid(component: KubeObject) -> str:
    """Uid of the graph that a component belongs to: only that graph hands over what it owns. "" without a graph."""
    owner = objects.controller_of(component)
    return str(owner["uid"]) if owner is not None and owner["kind"] == resources.DYNAMO_GRAPH_DEPLOYMENTS.kind else ""


def workload_of(cache: ObjectCache, component: KubeObject) -> KubeObject | None:
    """The workload that runs the pods of a component deployment; None if there is none.

    While one that spans nodes replaces one that does not, or vice versa, this is the desired one.
    """
    namespace, name = objects.namespace(component), objects.name(component)
    groups = (names.leader_worker_set(name), names.leader_worker_set_of_operator(name))
    workloads = (
        cache.get(resource, ObjectKey(namespace, each))
        for resource in _desired_first(component)
        for each in (groups if resource == resources.LEADER_WORKER_SETS else (name,))
    )
    return next((each for each in workloads if each is not None and objects.controls(component, each)), None)


def _desired_first(component: KubeObject) -> tuple[Resource, ...]:
    multinode = component.get("spec", {}).get("multinode") or {}
    return tuple(reversed(WORKLOADS)) if multinode.get("nodeCount", 1) > 1 else WORKLOADS


def in_order(desired: Iterable[KubeObject]) -> tuple[list[KubeObject], list[KubeObject]]:
    """Children to write first, and those to write after them."""
    first: list[KubeObject] = []
    rest: list[KubeObject] = []
    for child in desired:
        (first if resources.of(child) in _FIRST else rest).append(child)
    return first, rest


def surplus(
    present: Mapping[tuple[str, str], KubeObject], desired: Iterable[KubeObject], keep: Iterable[str] = ()
) -> list[KubeObject]:
    """Children (from `children_of`) to delete: not in `desired`, uid not in `keep`, and not already being deleted.

    PersistentVolumeClaims stay as long as their owner, as with the reference: v1beta1 has no field for them, so a
    v1beta1 graph names none, but its pods still mount them.
    """
    places = {(resources.of(child).id, objects.name(child)) for child in desired}
    kept = set(keep)
    return [
        child
        for place, child in present.items()
        if place not in places
        and place[0] != resources.PERSISTENT_VOLUME_CLAIMS.id
        and objects.uid(child) not in kept
        and not objects.is_deleting(child)
    ]


def _owner_uid(obj: KubeObject) -> Iterable[str]:
    return [owner["uid"] for owner in owners_of(obj)]
