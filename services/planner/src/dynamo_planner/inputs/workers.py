"""Workers of a graph in Kubernetes: which component is which pool, how many exist, and how many start or wait. Pure.

Objects come from STATE as plain data, graphs in v1beta1. Counts are those of Dynamo's planner (planner.md, section
a.3): available replicas, otherwise ready ones; in addition, requested replicas and those without room in the cluster.
"""

from collections.abc import Iterable, Sequence

from dynamo_shared.api import gpus, objects
from dynamo_shared.api.contracts.planner import Mode
from dynamo_shared.api.gpus import ReplicaGpus
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import is_active, unschedulable
from dynamo_shared.api.registry import labels
from dynamo_shared.api.role_templates import serving_template

from dynamo_planner.core.limits import planned_pools
from dynamo_planner.core.observation import Missing, Pool, PoolCounts
from dynamo_planner.inputs.outcome import InputError, InputUnavailable

_NAMES = {
    Pool.PREFILL: ("vllmprefillworker", "prefill"),
    Pool.DECODE: ("vllmdecodeworker", "decode"),
}
"""Names that imply the role of workers without a type, as in Dynamo's planner; case is ignored."""


_REPLICAS = (
    (labels.LWS_NAME, labels.LWS_GROUP),
    (labels.GROVE_SCALING_GROUP, labels.GROVE_SCALING_GROUP_REPLICA),
)
"""Labels that identify a multi-pod workload, and the replica within it."""

_OF_WORKERS = frozenset(pool.value for pool in Pool)
"""Types of workers with a single role."""


class SharedGpusError(Exception):
    """Workers share GPUs, so a replica has no capacity of its own."""


class UnknownGpusError(Exception):
    """The GPUs of a worker are not known yet."""


def find_pools(graph: KubeObject, mode: Mode) -> dict[Pool, KubeObject]:
    """The component of each pool that a mode plans; InputError if a pool has no component, or several candidates."""
    components = [each for each in (graph.get("spec") or {}).get("components") or () if each.get("name")]
    return {pool: _find(components, pool, mode) for pool in planned_pools(mode)}


def pool_counts(graph: KubeObject, component: KubeObject, pods: Iterable[KubeObject]) -> PoolCounts | InputUnavailable:
    """Workers of a pool; `pods`: all pods of its component."""
    name = component["name"]
    reported = ((graph.get("status") or {}).get("components") or {}).get(name) or {}
    ready = reported.get("availableReplicas", reported.get("readyReplicas"))
    if ready is None:
        return InputUnavailable(
            why=Missing.NO_WORKERS, message=f"the graph's status does not have the number of workers of {name} yet"
        )
    there = [pod for pod in pods if is_active(pod)]
    pending = [pod for pod in there if unschedulable(pod) is not None]
    # If one pod of a multi-node replica is pending, the whole replica cannot serve.
    waiting = {_replica(pod) for pod in pending}
    starting = [pod for pod in there if _starts(pod) and (_replica(pod) is None or _replica(pod) not in waiting)]
    nodes = gpus.nodes(component)
    return PoolCounts(
        ready=int(ready),
        expected=int(component.get("replicas", 1) or 0),
        pending=_replicas(pending, nodes),
        starting=_replicas(starting, nodes),
    )


def gpus_of_worker(name: str, counted: ReplicaGpus) -> int | None:
    """GPUs of one worker of a component; None if neither its pods nor its claims state them.

    SharedGpusError if more workers do not have more GPUs, UnknownGpusError if some of its claims cannot be counted yet.
    """
    if counted.shared:
        shared = " and ".join(f"ResourceClaim {claim}" for claim in sorted(counted.shared))
        raise SharedGpusError(
            f"all replicas of {name} share {gpus.words(sum(counted.shared.values()))} of {shared}: more replicas get no "
            "more GPUs. Name a ResourceClaimTemplate (resourceClaimTemplateName), from which each pod gets its own"
        )
    if counted.unknown:
        raise UnknownGpusError(f"GPUs of {name} are unknown: {'; '.join(map(str, counted.unknown))}")
    return counted.own or None


def _find(components: Sequence[KubeObject], pool: Pool, mode: Mode) -> KubeObject:
    kinds = {"worker", "decode"} if mode is Mode.AGG else {pool.value}
    matching = [each for each in components if _kind(each) in kinds]
    # Next to an aggregated worker, mode agg ignores single-role ones.
    matching = [each for each in matching if _kind(each) == "worker"] or matching
    if not matching:
        matching = [each for each in components if each["name"].lower() in _NAMES[pool]]
    if len(matching) == 1:
        return matching[0]
    there = ", ".join(f"{each['name']} ({_kind(each) or 'no type'})" for each in components) or "none"
    kind = "worker" if mode is Mode.AGG else pool.value
    problem = "none" if not matching else "more than one"
    raise InputError(
        f"mode {mode.value} needs one component of type {kind}, but the graph has {problem}; its components: {there}"
    )


def _kind(component: KubeObject) -> str:
    """Type of a component. If a worker has no type, or the aggregated type, a label of its pods may state the role.

    Graphs that came from v1alpha1 have the role of a worker there, and current pods have their type in a label.
    """
    kind = str(component.get("type") or "")
    if kind not in {"", "worker"}:
        return kind
    of_pods = objects.labels(serving_template(component))
    labelled = (of_pods.get(name) for name in (labels.SUB_COMPONENT_TYPE, labels.COMPONENT_TYPE))
    return next((each for each in labelled if each in _OF_WORKERS), kind)


def _replicas(pods: Sequence[KubeObject], nodes: int) -> int:
    """Replicas of the pods; pods without a replica label count as the smallest number of replicas that they
    can form.
    """
    replicas = [_replica(pod) for pod in pods]
    return len(set(replicas) - {None}) + -(-replicas.count(None) // nodes)


def _replica(pod: KubeObject) -> tuple[str, str] | None:
    """The multi-pod replica of a pod, from the labels of LeaderWorkerSet or Grove; None without such a label."""
    there = objects.labels(pod)
    return next(((there[of], there[index]) for of, index in _REPLICAS if of in there and index in there), None)


def _starts(pod: KubeObject) -> bool:
    has_node = bool((pod.get("spec") or {}).get("nodeName"))
    return has_node and not objects.is_true(pod, "Ready")
