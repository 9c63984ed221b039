"""What only v1alpha1 can say of a component: kept by conversion in an annotation, and acted on all the same.

A graph's services hand it down to their component deployments: labels and annotations in the pod template, the rest in
the same annotation, so that a component deployment which a user wrote in v1alpha1 is not a special case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynamo_shared.api.conversion import convert
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.api.v1beta1 import ComponentType, DynamoComponentDeployment, DynamoGraphDeployment, to_dict

ALPHA = DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1").api_version
#: Fields of a service that are acted on and have no place in v1beta1.
_HANDED_DOWN = ("ingress", "componentType")


@dataclass(frozen=True, slots=True)
class OfComponent:
    """What v1alpha1 says of one component beyond v1beta1."""

    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    ingress: KubeObject | None = None
    #: A component type that v1beta1 does not know, such as `default`; "" otherwise.
    type: str = ""


NOTHING = OfComponent()


@dataclass(frozen=True, slots=True)
class OfGraph:
    """What v1alpha1 says of a graph beyond v1beta1."""

    claims: tuple[KubeObject, ...] = ()
    services: Mapping[str, KubeObject] = field(default_factory=dict)


def of_graph(graph: DynamoGraphDeployment) -> OfGraph:
    """A graph's v1alpha1 fields; empty where it never was v1alpha1, or has no such fields."""
    if PRESERVED_FIELDS not in graph.metadata.annotations:
        return OfGraph()
    spec = convert(to_dict(graph), ALPHA).get("spec", {})
    return OfGraph(tuple(spec.get("pvcs") or ()), spec.get("services") or {})


def of_component(component: DynamoComponentDeployment) -> OfComponent:
    """A component deployment's v1alpha1 fields."""
    if PRESERVED_FIELDS not in component.metadata.annotations:
        return NOTHING
    spec = convert(to_dict(component), ALPHA).get("spec", {})
    written = spec.get("componentType") or ""
    return OfComponent(
        spec.get("annotations") or {},
        spec.get("labels") or {},
        spec.get("ingress"),
        written if component.spec.type is None and written not in set(ComponentType) else "",
    )


def with_metadata(template: KubeObject, service: KubeObject | None) -> KubeObject:
    """A pod template with a service's labels and annotations beneath its own."""
    metadata = template.get("metadata") or {}
    merged = {
        part: {**beneath, **(metadata.get(part) or {})}
        for part in ("labels", "annotations")
        if (beneath := (service or {}).get(part))
    }
    return {**template, "metadata": {**metadata, **merged}} if merged else template


def handed_down(component: KubeObject, service: KubeObject | None) -> KubeObject:
    """A component deployment with what its graph's service says beyond v1beta1, in the annotation of conversion."""
    inherited = {name: service[name] for name in _HANDED_DOWN if service and name in service}
    if not inherited:
        return component
    old = convert(component, ALPHA)
    missing = {name: value for name, value in inherited.items() if old["spec"].get(name) != value}
    if not missing:
        return component
    return convert({**old, "spec": {**old["spec"], **missing}}, DYNAMO_COMPONENT_DEPLOYMENTS.api_version)
