"""Events of graph deployments, and of component deployments without a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventIdentity, EventSpec, Int64

GRAPH_DEPLOYMENT = "dynamographdeployment"
COMPONENT_DEPLOYMENT = "dynamocomponentdeployment"


class ComponentCounts(msgspec.Struct, kw_only=True, frozen=True):
    """Replicas of one component: desired, and how many are ready, up to date and available."""

    replicas: Count = 0
    ready: Count = 0
    updated: Count = 0
    available: Count = 0


class DeploymentData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoGraphDeployment as it was when the event happened."""

    name: str
    namespace: str
    state: str = ""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"
    backend_framework: str = ""
    components: dict[str, ComponentCounts] = {}


def deployment_data(graph: dict[str, Any], status: Mapping[str, Any] | None = None) -> DeploymentData:
    """Data of a deployment event from a DynamoGraphDeployment and its status (the object's own by default).

    Reason and message are those of its Ready condition.
    """
    status = graph.get("status", {}) if status is None else status
    return DeploymentData(
        **_described(graph, status, "Ready"),
        state=status.get("state", ""),
        components={name: _counts(entry) for name, entry in (status.get("components") or {}).items()},
    )


class ComponentDeploymentData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoComponentDeployment without a graph as it was when the event happened."""

    name: str
    namespace: str
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"
    backend_framework: str = ""
    replicas: ComponentCounts = ComponentCounts()


def component_deployment_data(
    component: dict[str, Any], status: Mapping[str, Any] | None = None
) -> ComponentDeploymentData:
    """Data of an event from a DynamoComponentDeployment and its status (the object's own by default).

    Reason and message are those of its Available condition.
    """
    status = component.get("status", {}) if status is None else status
    return ComponentDeploymentData(
        **_described(component, status, "Available"), replicas=_counts(status.get("component") or {})
    )


def _described(obj: dict[str, Any], status: Mapping[str, Any], condition: str) -> dict[str, Any]:
    """What both say: which object it is, and the reason and message of its condition of this type."""
    metadata = obj["metadata"]
    entry: Mapping[str, Any] = next(
        (each for each in status.get("conditions", ()) if each.get("type") == condition), {}
    )
    return {
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "reason": entry.get("reason", ""),
        "message": entry.get("message", ""),
        "generation": str(metadata.get("generation", 0)),
        "backend_framework": obj.get("spec", {}).get("backendFramework", ""),
    }


def _counts(entry: Mapping[str, Any]) -> ComponentCounts:
    return ComponentCounts(
        replicas=entry.get("replicas") or 0,
        ready=entry.get("readyReplicas") or 0,
        updated=entry.get("updatedReplicas") or 0,
        available=entry.get("availableReplicas") or 0,
    )


def _deployment(event: str, identity: EventIdentity, description: str) -> EventSpec:
    return EventSpec(
        family="deployment",
        event=event,
        kind=GRAPH_DEPLOYMENT,
        publisher="pod-builder",
        data=DeploymentData,
        identity=identity,
        description=description,
    )


def _component(event: str, identity: EventIdentity, description: str, reason: str, message: str) -> EventSpec:
    return EventSpec(
        family="component",
        event=event,
        kind=COMPONENT_DEPLOYMENT,
        publisher="pod-builder",
        data=ComponentDeploymentData,
        identity=identity,
        description=f"{description} Only of a component deployment without a graph.",
        sample=ComponentDeploymentData(
            name="decode",
            namespace="prod",
            reason=reason,
            message=message,
            generation="2",
            backend_framework="vllm",
            replicas=ComponentCounts(replicas=2, ready=1, updated=2, available=1),
        ),
    )


EVENTS: tuple[EventSpec, ...] = (
    _deployment("created", EventIdentity.OBJECT, "The platform has observed a new graph deployment."),
    _deployment("progressing", EventIdentity.VERSION, "Its components are on their way to the desired state."),
    _deployment("ready", EventIdentity.VERSION, "All its components are ready."),
    _deployment("failed", EventIdentity.VERSION, "It cannot become ready as it is; reason and message say why."),
    _deployment("deleted", EventIdentity.OBJECT, "It is gone, and all that was made for it."),
    _component(
        "progressing",
        EventIdentity.VERSION,
        "Its pods are on their way, or stuck; reason and message say why.",
        "ImagePullBackOff",
        "pod decode-6d4b: container main cannot pull its image",
    ),
    _component("ready", EventIdentity.VERSION, "It is available.", "DeploymentReady", "Deployment is ready"),
    _component(
        "failed",
        EventIdentity.VERSION,
        "It cannot be created as it is; reason and message say why.",
        "RefusedByApiServer",
        "403 Forbidden: exceeded quota",
    ),
    _component(
        "deleted",
        EventIdentity.OBJECT,
        "It is gone, and all that was made for it.",
        "DeploymentReady",
        "Deployment is ready",
    ),
)
