"""Whether the GPUs that a graph needs are free now, by node, and what would have to be freed. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api import device_claims, gpus
from dynamo_shared.api.device_claims import KnownClaims, NotCounted
from dynamo_shared.api.device_slices import PublishedGpu, whole_gpus
from dynamo_shared.api.gpus import ReplicaGpus
from dynamo_shared.api.gpus import words as gpu_words
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dynamo_shared.api.role_templates import templates
from dynamo_shared.api.wording import many

from dynamo_dynadmin.api.family import gpus_in_use
from dynamo_dynadmin.api.node_rules import ANY_NODE, NodeRules, taint_words


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """A node with GPUs."""

    name: str
    product: str
    total: int
    free: int
    labels: dict[str, str] = field(hash=False)
    taints: tuple[dict[str, Any], ...] = field(hash=False, default=())
    schedulable: bool = True


@dataclass(frozen=True, slots=True)
class GpuDemand:
    """Pods of one component that request GPUs."""

    component: str
    pods: int
    gpus: int
    """of each pod"""
    nodes: NodeRules = field(hash=False, default=ANY_NODE)
    claims: tuple[str, ...] = ()
    shared: int = 0
    """GPUs that all pods share, by claims that are not allocated yet: all pods go to the node with these GPUs"""
    whole_node: bool = False
    """whether each pod uses all GPUs of its node, which must be free"""
    together: bool = False
    """whether all pods must run on one node"""
    uncounted: tuple[str, ...] = ()
    """claims that may also request GPUs"""

    @property
    def units(self) -> int:
        """Number of placements: one per pod, or one for all."""
        return 1 if self.together else self.pods

    @property
    def pods_of_unit(self) -> int:
        """Pods that one node must take together."""
        return self.pods if self.together else 1

    @property
    def gpus_of_unit(self) -> int:
        """GPUs that these need, if they do not need a whole node."""
        return self.pods_of_unit * self.gpus + self.shared

    def occupied_gpus(self, node: NodeRoom) -> int:
        """GPUs of a node that a unit occupies."""
        return node.total if self.whole_node else self.gpus_of_unit


@dataclass(frozen=True, slots=True)
class UsedGpus:
    """GPUs that pods occupy: counted by node, and devices allocated to claims."""

    counted: Counter[str]
    devices: set[tuple[str, str, str]]


def used_by(pods: Iterable[KubeObject], claims: Iterable[KubeObject]) -> UsedGpus:
    """The GPUs that these pods and claims occupy."""
    counted: Counter[str] = Counter()
    for pod in pods:
        if count := gpus_in_use(pod):
            counted[pod["spec"]["nodeName"]] += count
    return UsedGpus(counted, {device for claim in claims for device in device_claims.devices_of(claim)})


def nodes_of(nodes: Iterable[KubeObject], slices: Iterable[KubeObject], used: UsedGpus) -> list[NodeRoom]:
    """Nodes with GPUs, and their free GPUs.

    A node has the GPUs of its capacity, or those that a driver publishes in `slices` if there are more: they are the
    same GPUs.
    """
    published: dict[str, list[PublishedGpu]] = defaultdict(list)
    for gpu in whole_gpus(slices):
        published[gpu.node].append(gpu)
    node_of = {gpu.device: gpu.node for members in published.values() for gpu in members}
    count_of = used.counted + Counter(node_of[device] for device in used.devices if device in node_of)
    rows = []
    for node in nodes:
        metadata, spec = node["metadata"], node.get("spec") or {}
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        own = published.get(metadata["name"], [])
        total = max(gpus.count({"resources": {"limits": allocatable}}), len(own))
        if total:
            given = metadata.get("labels") or {}
            rows.append(
                NodeRoom(
                    name=metadata["name"],
                    product=given.get(labels.GPU_PRODUCT) or (own[0].product if own else ""),
                    total=total,
                    free=max(0, total - count_of[metadata["name"]]),
                    labels=given,
                    taints=tuple(spec.get("taints") or ()),
                    schedulable=not spec.get("unschedulable"),
                )
            )
    return sorted(rows, key=lambda each: each.name)


def demands_of(graph: KubeObject, claims: KnownClaims | None = None) -> list[GpuDemand]:
    """The demands of a v1beta1 graph's components. `claims`: those of its namespace, None if they may not be read."""
    rows: list[GpuDemand] = []
    asked: set[str] = set()
    for component in graph["spec"].get("components") or ():
        for template, of_replica in templates(component):
            spec = template.get("spec") or {}
            counted = gpus.of_replica({"podTemplate": template}, claims)
            pods = component.get("replicas", 1) * of_replica
            names = tuple(str(each.get("name") or "") for each in spec.get("resourceClaims") or ())
            if not pods or not (counted != ReplicaGpus() or names):
                continue
            # Allocated claims already count as used; a claim that several components share is needed only once.
            waiting = {
                name
                for name in device_claims.shared_names(spec)
                if claims is not None
                and (claim := claims.claim(name)) is not None
                and device_claims.allocated(claim) is None
            }
            of_node = [each for each in counted.unknown if each.why is NotCounted.ALL_OF_A_NODE]
            shared_of_node = {each.name for each in of_node if each.kind == RESOURCE_CLAIMS.kind}
            rows.append(
                GpuDemand(
                    component=component["name"],
                    pods=pods,
                    gpus=counted.own,
                    nodes=NodeRules.of(spec),
                    claims=names,
                    shared=sum(number for name, number in counted.shared.items() if name in waiting - asked),
                    whole_node=len(of_node) > len(shared_of_node) or bool(shared_of_node - asked),
                    together=bool(waiting & (counted.shared.keys() | shared_of_node)),
                    uncounted=_unread(spec)
                    if claims is None
                    else tuple(str(each) for each in counted.unknown if each.why is NotCounted.MISSING),
                )
            )
            asked |= waiting
    return rows


def _unread(pod: KubeObject) -> tuple[str, ...]:
    templates = (f"{RESOURCE_CLAIM_TEMPLATES.kind} {name}" for name in device_claims.template_names(pod))
    claims = (f"{RESOURCE_CLAIMS.kind} {name}" for name in device_claims.shared_names(pod))
    return tuple(f"{each}, which you may not read" for each in (*templates, *claims))


def fit(demands: Sequence[GpuDemand], nodes: Sequence[NodeRoom], *, exact: bool) -> dict[str, Any]:
    """Where pods would be placed, largest first; `exact`: whether everything in use in the cluster was counted.

    GPUs of claims in `uncounted` are unknown, so `needed` does not include them.
    """
    free = {node.name: node.free for node in nodes}
    placed: list[dict[str, Any]] = []
    missing: list[dict[str, Any]] = []
    needed = 0
    for demand in sorted(demands, key=lambda each: (not each.whole_node, -each.gpus_of_unit)):
        unsuited = {node.name: reason for node in nodes if (reason := _unfit(node, demand))}
        suited = [node for node in nodes if node.name not in unsuited]
        where = _placed(demand, suited, free)
        rows = [
            {
                "component": demand.component,
                "node": node.name,
                "pods": where[node.name] * demand.pods_of_unit,
                "gpus": where[node.name] * demand.occupied_gpus(node),
            }
            for node in sorted(suited, key=lambda each: each.name)
            if where[node.name]
        ]
        placed += rows
        needed += sum(where[node.name] * demand.occupied_gpus(node) for node in suited)
        if (lacking := demand.units - where.total()) > 0:
            needed += lacking * demand.gpus_of_unit
            missing.append(
                {
                    "component": demand.component,
                    "pods": lacking * demand.pods_of_unit,
                    "gpus": lacking * demand.gpus_of_unit,
                    "why": _why(demand, suited, Counter(unsuited.values())),
                    "free": [node.name for node in suited if node.total >= demand.gpus_of_unit],
                }
            )
    uncounted = sorted({claim for each in demands for claim in each.uncounted})
    return {
        "fits": not missing,
        "exact": exact and not uncounted,
        "needed": needed,
        "free": sum(node.free for node in nodes if node.schedulable),
        "placed": placed,
        "missing": missing,
        "claims": sorted({claim for each in demands for claim in each.claims}),
        "uncounted": uncounted,
        "nodes": [node_row(node) for node in nodes],
    }


def _placed(demand: GpuDemand, suited: Sequence[NodeRoom], free: dict[str, int]) -> Counter[str]:
    """Units of a demand by node; subtracts them from `free`."""
    where: Counter[str] = Counter()
    left = demand.units
    # Choosing the fullest node with room keeps others free for larger pods. It stays the fullest until it has no room.
    for node in sorted(suited, key=lambda each: (free[each.name], each.name)):
        taken = demand.occupied_gpus(node)
        count = min(left, max(0, free[node.name]) // taken) if taken else left
        if count:
            free[node.name] -= count * taken
            where[node.name], left = count, left - count
    return where


def node_row(node: NodeRoom) -> dict[str, Any]:
    """A node as a row."""
    return {
        "name": node.name,
        "product": node.product,
        "total": node.total,
        "free": node.free,
        "schedulable": node.schedulable,
        "taints": [taint_words(each) for each in node.taints],
    }


def _why(demand: GpuDemand, suited: Sequence[NodeRoom], reasons: Counter[str]) -> str:
    if suited and all(node.total < demand.gpus_of_unit for node in suited):
        split = "" if demand.claims else "; set hardware.gpusPerNode, so that a replica spans several nodes"
        return f"no node has {gpu_words(demand.gpus_of_unit)}{split}"
    if suited and demand.whole_node:
        return "a replica needs all GPUs of a node, and no node has all its GPUs free"
    verbs = "matches but has" if len(suited) == 1 else "match but have"
    words = [f"{many(len(suited), 'node')} {verbs} too few free GPUs"] if suited else []
    words += [f"{count} {reason}" for reason, count in sorted(reasons.items())]
    return "; ".join(words) or "the cluster has no node with GPUs"


def _unfit(node: NodeRoom, demand: GpuDemand) -> str:
    return demand.nodes.excluding(node.name, node.labels, node.taints) if node.schedulable else "unschedulable"
