"""Graphs and components as one line each: the output of `get` and of the demo. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.objects import KubeObject, condition
from dynamo_shared.api.registry import labels

NONE = "-"


@dataclass(frozen=True, slots=True)
class GraphLine:
    """A line about a DynamoGraphDeployment."""

    name: str
    backend: str
    state: str
    components: str
    """components with all their replicas, of all components: `1/3`"""
    created: str
    message: str


@dataclass(frozen=True, slots=True)
class ComponentLine:
    """A line about a DynamoComponentDeployment."""

    name: str
    component: str
    type: str
    replicas: str
    """ready replicas, of the desired ones: `2/2`"""
    available: str
    created: str
    message: str


def graph_line(graph: KubeObject) -> GraphLine:
    """The line of a graph. Reads leniently: a missing value is displayed as missing."""
    metadata, spec, status = graph["metadata"], graph.get("spec") or {}, graph.get("status") or {}
    counts = status.get("components") or {}
    components = spec.get("components") or []
    ready = sum(_is_ready(counts.get(each.get("name"), {}), _desired(each)) for each in components)
    return GraphLine(
        name=metadata["name"],
        backend=spec.get("backendFramework") or NONE,
        state=status.get("state") or "initializing",
        components=f"{ready}/{len(components)}",
        created=metadata.get("creationTimestamp", ""),
        message=(condition(graph, "Ready") or {}).get("message", ""),
    )


def component_line(component: KubeObject) -> ComponentLine:
    """The line of a component, read as leniently."""
    metadata, spec, status = component["metadata"], component.get("spec") or {}, component.get("status") or {}
    counts = status.get("component") or {}
    available = condition(component, "Available") or {}
    return ComponentLine(
        name=metadata["name"],
        component=(metadata.get("labels") or {}).get(labels.COMPONENT) or spec.get("name") or NONE,
        type=spec.get("type") or NONE,
        replicas=f"{counts.get('readyReplicas') or 0}/{_desired(spec)}",
        available=available.get("status") or "Unknown",
        created=metadata.get("creationTimestamp", ""),
        message=available.get("message", ""),
    )


def is_successful(graph: KubeObject) -> bool:
    """Whether the graph's current generation is successful."""
    status = graph.get("status") or {}
    return status.get("state") == "successful" and status.get("observedGeneration") == graph["metadata"].get(
        "generation"
    )


def _desired(component: Mapping[str, Any]) -> int:
    replicas = component.get("replicas")
    return 1 if replicas is None else int(replicas)


def _is_ready(counts: Mapping[str, Any], desired: int) -> bool:
    if not counts:
        return False
    ready = counts.get("readyReplicas")
    ready = counts.get("availableReplicas") if ready is None else ready
    return (ready or 0) >= desired and counts.get("updatedReplicas", 0) >= desired
