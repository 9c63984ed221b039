"""How far the object that runs a component's pods is: a Deployment, or a LeaderWorkerSet where replicas span nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.resources import DEPLOYMENTS, LEADER_WORKER_SETS, Resource

from dynamo_pod_builder.status.conditions import find

KubeObject = dict[str, Any]

#: In the order in which they are looked for.
WORKLOADS: tuple[Resource, ...] = (DEPLOYMENTS, LEADER_WORKER_SETS)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a workload serves as it is wanted, and what is missing where it does not."""

    ready: bool
    message: str


def ready_replicas(workload: KubeObject | None) -> tuple[int, int]:
    """Replicas that are available, and that are ready; a LeaderWorkerSet tells no difference."""
    status = (workload or {}).get("status", {})
    ready = status.get("readyReplicas", 0)
    return (ready if _spans_nodes(workload) else status.get("availableReplicas", 0)), ready


def replicas_of(workload: KubeObject | None) -> KubeObject | None:
    """`status.component` of a DCD and `status.components[name]` of a DGD; None before there is a workload."""
    if workload is None:
        return None
    status = workload.get("status", {})
    found = {
        "componentKind": workload.get("kind", DEPLOYMENTS.kind),
        "componentNames": [workload["metadata"]["name"]],
        "replicas": status.get("replicas", 0),
        "updatedReplicas": status.get("updatedReplicas", 0),
        "readyReplicas": status.get("readyReplicas", 0),
    }
    return found if _spans_nodes(workload) else {**found, "availableReplicas": status.get("availableReplicas", 0)}


def readiness(workload: KubeObject | None) -> Readiness:
    """Ready means: every wanted replica of the newest template serves and no other is left."""
    if workload is None:
        return Readiness(False, "no Deployment yet")
    return _leader_worker_set(workload) if _spans_nodes(workload) else _deployment(workload)


def _deployment(deployment: KubeObject) -> Readiness:
    spec, status = deployment.get("spec", {}), deployment.get("status", {})
    if spec.get("paused"):
        return Readiness(False, "the Deployment is paused")
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 1):
        return Readiness(False, "the Deployment's change is not yet observed")
    wanted = spec.get("replicas", 1)
    updated, available, total = (status.get(name, 0) for name in ("updatedReplicas", "availableReplicas", "replicas"))
    if updated >= wanted and available >= wanted and total == wanted and (wanted == 0 or _is(status, "Available")):
        return Readiness(True, f"{wanted} of {wanted} replicas available")
    # What the Deployment controller itself has to say tells more than numbers: quota, deadline, refused pods.
    trouble = [
        f"{entry['reason']}: {entry.get('message', '')}"
        for entry in status.get("conditions", ())
        if (entry["type"] == "ReplicaFailure" and entry["status"] == "True")
        or (entry["type"] == "Progressing" and entry["status"] == "False")
    ]
    counts = f"{available} of {wanted} replicas available, {updated} updated, {total} in all"
    return Readiness(False, "; ".join([counts, *trouble]))


def _leader_worker_set(workload: KubeObject) -> Readiness:
    """A LeaderWorkerSet counts groups, and does not say which generation of its spec the counts are of."""
    status, wanted = workload.get("status", {}), workload.get("spec", {}).get("replicas", 1)
    updated, ready, total = (status.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "replicas"))
    if updated >= wanted and ready >= wanted and total == wanted and (wanted == 0 or _is(status, "Available")):
        return Readiness(True, f"{wanted} of {wanted} groups ready")
    return Readiness(False, f"{ready} of {wanted} groups ready, {updated} updated, {total} in all")


def _spans_nodes(workload: KubeObject | None) -> bool:
    return workload is not None and workload.get("kind") == LEADER_WORKER_SETS.kind


def _is(status: KubeObject, type_: str) -> bool:
    entry = find(status.get("conditions", ()), type_)
    return entry is not None and entry["status"] == "True"
