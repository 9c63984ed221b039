"""Status of a DynamoComponentDeployment, read off the Deployment it became (reference behaviour, sections 2.1 and 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dynamo_pod_builder.status.conditions import Condition, condition, find

AVAILABLE = "Available"
COMPONENT_READY = "DynamoComponentReady"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a component cannot come into being until somebody changes something."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a workload serves as it is wanted, and what is missing where it does not."""

    ready: bool
    message: str


def replicas_of(deployment: dict[str, Any] | None) -> dict[str, Any] | None:
    """`status.component` of a DCD and `status.components[name]` of a DGD; None before there is a Deployment."""
    if deployment is None:
        return None
    status = deployment.get("status", {})
    return {
        "componentKind": "Deployment",
        "componentNames": [deployment["metadata"]["name"]],
        "replicas": status.get("replicas", 0),
        "updatedReplicas": status.get("updatedReplicas", 0),
        "readyReplicas": status.get("readyReplicas", 0),
        "availableReplicas": status.get("availableReplicas", 0),
    }


def readiness(deployment: dict[str, Any] | None) -> Readiness:
    """Ready means: every wanted pod of the newest template is available and no other pod is left."""
    if deployment is None:
        return Readiness(False, "no Deployment yet")
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


def component_status(
    component: dict[str, Any], deployment: dict[str, Any] | None, failure: Failure | None, now: datetime
) -> dict[str, Any]:
    """The whole `status` of a DCD."""
    generation = component["metadata"].get("generation", 1)
    previous: list[Condition] = component.get("status", {}).get("conditions", [])
    state = readiness(deployment)
    if failure is not None:
        available = ("False", failure.reason, failure.message)
    elif state.ready:
        available = ("True", "DeploymentReady", state.message)
    else:
        available = ("False", "DeploymentNotReady", state.message)
    ready = available[0] == "True"
    conditions = [
        condition(
            previous, AVAILABLE, status=ready, reason=available[1], message=available[2], generation=generation, now=now
        ),
        condition(
            previous,
            COMPONENT_READY,
            status=ready,
            reason="ComponentReady" if ready else "ComponentNotReady",
            message=available[2],
            generation=generation,
            now=now,
        ),
    ]
    status: dict[str, Any] = {"observedGeneration": generation, "conditions": conditions}
    if (replicas := replicas_of(deployment)) is not None:
        status["component"] = replicas
    return status


def failure_of(component: dict[str, Any]) -> Failure | None:
    """The failure that a DCD's status tells of, where it still concerns the DCD's present spec."""
    status = component.get("status", {})
    if status.get("observedGeneration") != component["metadata"].get("generation", 1):
        return None
    entry = find(status.get("conditions", ()), AVAILABLE)
    if entry is None or entry["status"] != "False" or entry["reason"] == "DeploymentNotReady":
        return None
    return Failure(entry["reason"], entry["message"])


def is_available(component: dict[str, Any]) -> bool:
    """Whether a DCD's status says that it serves."""
    return _is(component.get("status", {}), AVAILABLE)


def _is(status: dict[str, Any], type_: str) -> bool:
    entry = find(status.get("conditions", ()), type_)
    return entry is not None and entry["status"] == "True"
