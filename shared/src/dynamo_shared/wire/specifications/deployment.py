"""Events of graph deployments, and of component deployments without a graph."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dynamo_shared.api.untrusted.reading import mapping
from dynamo_shared.wire.specifications.base import Count, EventFamily, EventIdentity, EventSpec, Int64

GRAPH_DEPLOYMENT = "dynamographdeployment"
COMPONENT_DEPLOYMENT = "dynamocomponentdeployment"


class ComponentCounts(msgspec.Struct, kw_only=True, frozen=True):
    """Replicas of one component: desired, and how many are ready, up to date and available."""

    replicas: Count = 0
    """desired replicas"""
    ready: Count = 0
    """replicas that serve"""
    updated: Count = 0
    """replicas of the current template"""
    available: Count = 0
    """replicas that have been ready for long enough"""


class DeploymentData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoGraphDeployment as it was when the event happened."""

    name: str
    namespace: str
    state: str = ""
    """`pending`, `successful` or `failed`, as in its status"""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"
    backend_framework: str = ""
    components: dict[str, ComponentCounts] = {}
    """counts by component"""


def deployment_data(
    graph: dict[str, Any], status: Mapping[str, Any] | None = None, condition: str = "Ready"
) -> DeploymentData:
    """Data of a deployment event from a DynamoGraphDeployment and its status (the object's own by default).

    Reason and message come from its condition of the type `condition`.
    """
    status = graph.get("status", {}) if status is None else status
    return DeploymentData(
        **_described(graph, status, condition),
        state=status.get("state", ""),
        components={name: _counts(entry) for name, entry in mapping(status.get("components")).items()},
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
    """its counts"""


def component_deployment_data(
    component: dict[str, Any], status: Mapping[str, Any] | None = None
) -> ComponentDeploymentData:
    """Data of an event from a DynamoComponentDeployment and its status (the object's own by default).

    Reason and message come from its Available condition.
    """
    status = component.get("status", {}) if status is None else status
    return ComponentDeploymentData(
        **_described(component, status, "Available"), replicas=_counts(status.get("component"))
    )


def _described(obj: dict[str, Any], status: Mapping[str, Any], condition: str) -> dict[str, Any]:
    """Fields of both: the object's identity, and the reason and message of its condition of this type."""
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


def _counts(observed: Any) -> ComponentCounts:
    entry = mapping(observed)
    return ComponentCounts(
        replicas=entry.get("replicas") or 0,
        ready=entry.get("readyReplicas") or 0,
        updated=entry.get("updatedReplicas") or 0,
        available=entry.get("availableReplicas") or 0,
    )


_deployment = EventFamily("deployment", GRAPH_DEPLOYMENT, "pod-builder", DeploymentData)
_component = EventFamily("component", COMPONENT_DEPLOYMENT, "pod-builder", ComponentDeploymentData)
_ALONE = "Only for a component deployment without a graph."

EVENTS: tuple[EventSpec, ...] = (
    _deployment("created", "The platform has observed a new graph deployment.", EventIdentity.OBJECT),
    _deployment("progressing", "The components are not in the desired state yet."),
    _deployment("ready", "All components are ready."),
    _deployment("failed", "The graph deployment cannot become ready without a change; see reason and message."),
    _deployment(
        "checkpoints",
        "The checkpoints of the components (by the Snapshot operator) are in progress, ready, or failed; reason and message are "
        "those of the condition CheckpointsReady.",
    ),
    _deployment(
        "planner-uninformed",
        "A planner component cannot find out which workers serve; reason and message are those of the condition PlannerInformed.",
    ),
    _deployment("deleted", "The graph deployment and all objects created for it are deleted.", EventIdentity.OBJECT),
    _component("progressing", f"Pods are starting or cannot start; see reason and message. {_ALONE}"),
    _component("ready", f"The component deployment is available. {_ALONE}"),
    _component("failed", f"The workload cannot be created without a change; see reason and message. {_ALONE}"),
    _component(
        "deleted",
        f"The component deployment and all objects created for it are deleted. {_ALONE}",
        EventIdentity.OBJECT,
    ),
)
