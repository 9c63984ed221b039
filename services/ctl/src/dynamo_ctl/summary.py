"""Graphs and components as one line each: what `get` prints and the demo shows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.objects import KubeObject, condition
from dynamo_shared.api.registry import labels

NONE = "-"


@dataclass(frozen=True, slots=True)
class GraphLine:
    """A DynamoGraphDeployment at a glance. `ready` of `desired` components have all their replicas."""

    namespace: str
    name: str
    backend: str
    state: str
    ready: int
    desired: int
    created: str
    message: str

    @property
    def components(self) -> str:
        """`1/3`."""
        return f"{self.ready}/{self.desired}"


@dataclass(frozen=True, slots=True)
class ComponentLine:
    """A DynamoComponentDeployment at a glance, in replicas."""

    namespace: str
    name: str
    component: str
    type: str
    ready: int
    desired: int
    available: str
    created: str
    message: str

    @property
    def replicas(self) -> str:
        """`2/2`."""
        return f"{self.ready}/{self.desired}"


def current(obj: KubeObject) -> bool:
    """Whether the status is about the object as it is now."""
    return bool((obj.get("status") or {}).get("observedGeneration") == obj["metadata"].get("generation"))


def graph_line(graph: KubeObject) -> GraphLine:
    """A graph, read leniently: whatever is missing is shown as such."""
    metadata, spec, status = graph["metadata"], graph.get("spec") or {}, graph.get("status") or {}
    counts = status.get("components") or {}
    components = spec.get("components") or []
    return GraphLine(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        backend=spec.get("backendFramework") or NONE,
        state=status.get("state") or "initializing",
        ready=sum(_is_ready(counts.get(each.get("name"), {}), _desired(each)) for each in components),
        desired=len(components),
        created=metadata.get("creationTimestamp", ""),
        message=(condition(graph, "Ready") or {}).get("message", ""),
    )


def component_line(component: KubeObject) -> ComponentLine:
    """A component, read as leniently."""
    metadata, spec, status = component["metadata"], component.get("spec") or {}, component.get("status") or {}
    counts = status.get("component") or {}
    available = condition(component, "Available") or {}
    return ComponentLine(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        component=(metadata.get("labels") or {}).get(labels.COMPONENT) or spec.get("name") or NONE,
        type=spec.get("type") or NONE,
        ready=counts.get("readyReplicas") or 0,
        desired=_desired(spec),
        available=available.get("status") or "Unknown",
        created=metadata.get("creationTimestamp", ""),
        message=available.get("message", ""),
    )


def is_successful(graph: KubeObject) -> bool:
    """Whether the graph, as it is now, is up."""
    return current(graph) and (graph.get("status") or {}).get("state") == "successful"


def _desired(component: Mapping[str, Any]) -> int:
    replicas = component.get("replicas")
    return 1 if replicas is None else int(replicas)


def _is_ready(counts: Mapping[str, Any], desired: int) -> bool:
    if not counts:
        return False
    ready = counts.get("readyReplicas")
    ready = counts.get("availableReplicas") if ready is None else ready
    return (ready or 0) >= desired and counts.get("updatedReplicas", 0) >= desired
