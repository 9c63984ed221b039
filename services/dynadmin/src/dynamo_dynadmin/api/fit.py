"""Whether the GPUs that a graph needs are there now, by node, and what would have to be freed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api import gpus
from dynamo_shared.api.gpus import words as gpu_words
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels

from dynamo_dynadmin.api.family import gpus_in_use

_EVICTING = frozenset({"NoSchedule", "NoExecute"})


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
    """Pods of one component that want GPUs."""

    component: str
    pods: int
    gpus: int
    """of each pod"""
    selector: dict[str, str] = field(hash=False, default_factory=dict)
    tolerations: tuple[dict[str, Any], ...] = ()
    claims: tuple[str, ...] = ()


def nodes_of(nodes: Iterable[KubeObject], pods: Iterable[KubeObject]) -> list[NodeRoom]:
    """Nodes with GPUs, and how many of them no pod has."""
    used: Counter[str] = Counter()
    for pod in pods:
        if count := gpus_in_use(pod):
            used[pod["spec"]["nodeName"]] += count
    rows = []
    for node in nodes:
        metadata, spec = node["metadata"], node.get("spec") or {}
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        total = gpus.count({"resources": {"limits": allocatable}})
        if total:
            given = metadata.get("labels") or {}
            rows.append(
                NodeRoom(
                    name=metadata["name"],
                    product=given.get(labels.GPU_PRODUCT, ""),
                    total=total,
                    free=max(0, total - used[metadata["name"]]),
                    labels=given,
                    taints=tuple(spec.get("taints") or ()),
                    schedulable=not spec.get("unschedulable"),
                )
            )
    return sorted(rows, key=lambda each: each.name)


def demands_of(graph: KubeObject) -> list[GpuDemand]:
    """What the components of a v1beta1 graph want."""
    rows = []
    for component in graph["spec"].get("components") or ():
        spec = (component.get("podTemplate") or {}).get("spec") or {}
        of_replica = gpus.of_replica(component)
        nodes = 1
        if component.get("multinode") is not None:
            nodes = component["multinode"].get("nodeCount", gpus.DEFAULT_NODES)
        claims = tuple(str(each.get("name") or "") for each in spec.get("resourceClaims") or ())
        replicas = component.get("replicas", 1)
        if (of_replica or claims) and replicas:
            rows.append(
                GpuDemand(
                    component=component["name"],
                    pods=replicas * nodes,
                    gpus=of_replica // nodes,
                    selector=dict(spec.get("nodeSelector") or {}),
                    tolerations=tuple(spec.get("tolerations") or ()),
                    claims=claims,
                )
            )
    return rows


def fit(demands: Sequence[GpuDemand], nodes: Sequence[NodeRoom], *, exact: bool) -> dict[str, Any]:
    """Where pods would go, largest first; `exact` says whether all pods of the cluster were counted."""
    free = {node.name: node.free for node in nodes}
    placed: list[dict[str, Any]] = []
    missing: list[dict[str, Any]] = []
    for demand in sorted(demands, key=lambda each: -each.gpus):
        reasons: Counter[str] = Counter(reason for node in nodes if (reason := _unfit(node, demand)))
        suited = [node for node in nodes if not _unfit(node, demand)]
        where: Counter[str] = Counter()
        for _ in range(min(demand.pods, 10_000)):
            # The fullest node that still has room keeps others whole for larger pods.
            room = [node for node in suited if free[node.name] >= demand.gpus]
            if not room:
                break
            best = min(room, key=lambda node: (free[node.name], node.name))
            free[best.name] -= demand.gpus
            where[best.name] += 1
        placed += [
            {"component": demand.component, "node": name, "pods": count, "gpus": count * demand.gpus}
            for name, count in sorted(where.items())
        ]
        if (lacking := demand.pods - where.total()) > 0:
            missing.append(
                {
                    "component": demand.component,
                    "pods": lacking,
                    "gpus": lacking * demand.gpus,
                    "why": _why(demand, suited, reasons),
                    "free": [node.name for node in suited if node.total >= demand.gpus],
                }
            )
    return {
        "fits": not missing,
        "exact": exact,
        "needed": sum(each.pods * each.gpus for each in demands),
        "free": sum(node.free for node in nodes if node.schedulable),
        "placed": placed,
        "missing": missing,
        "claims": sorted({claim for each in demands for claim in each.claims}),
        "nodes": [node_row(node) for node in nodes],
    }


def node_row(node: NodeRoom) -> dict[str, Any]:
    """A node as a row."""
    return {
        "name": node.name,
        "product": node.product,
        "total": node.total,
        "free": node.free,
        "schedulable": node.schedulable,
        "taints": [_taint(each) for each in node.taints],
    }


def _why(demand: GpuDemand, suited: Sequence[NodeRoom], reasons: Counter[str]) -> str:
    if suited and all(node.total < demand.gpus for node in suited):
        return f"no node has {gpu_words(demand.gpus)}; give hardware.gpusPerNode, so that a replica spans several nodes"
    words = [f"{len(suited)} nodes suit and have too few free GPUs"] if suited else []
    words += [f"{count} {reason}" for reason, count in sorted(reasons.items())]
    return "; ".join(words) or "the cluster has no node with GPUs"


def _unfit(node: NodeRoom, demand: GpuDemand) -> str:
    if not node.schedulable:
        return "unschedulable"
    if any(node.labels.get(key) != value for key, value in demand.selector.items()):
        return "without the labels of the node selector"
    for taint in node.taints:
        if taint.get("effect") in _EVICTING and not any(_tolerates(each, taint) for each in demand.tolerations):
            return f"with taint {_taint(taint)}"
    return ""


def _tolerates(toleration: dict[str, Any], taint: dict[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")


def _taint(taint: dict[str, Any]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"
