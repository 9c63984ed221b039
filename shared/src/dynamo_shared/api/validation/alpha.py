"""Views of v1alpha1: services in a map, pods in many fields, features with a switch."""

from itertools import islice
from typing import Any

from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import mapping, text
from dynamo_shared.api.validation.rule_set import ALPHA
from dynamo_shared.api.validation.view import CHECKED_COMPONENTS, ComponentView, GraphView, Words

WORDS = Words(
    component="service",
    components="services",
    type="componentType",
    intra_pod="intraPod",
    inter_pod="interPod",
    topology_name="topologyProfile",
    gpus="resources.limits.gpu",
    gms=("gpuMemoryService",),
    failover=("failover",),
    adapter="scalingAdapter.enabled",
)


def graph(obj: dict[str, Any]) -> GraphView:
    """Create the view of a graph."""
    spec = mapping(obj.get("spec"))
    services, backend = spec.get("services"), text(spec.get("backendFramework"))
    # The schema reports values of a wrong type.
    readable = isinstance(services, dict) or (services is None and isinstance(obj.get("spec", {}), dict | None))
    return GraphView(
        version=ALPHA,
        words=WORDS,
        obj=obj,
        components=tuple(
            _component(service, ("spec", "services", name), name, ("spec", "services", name), backend=backend)
            for name, service in islice(mapping(services).items(), CHECKED_COMPONENTS)
            if isinstance(service, dict) and isinstance(name, str)
        ),
        names=tuple(str(name) for name, service in mapping(services).items() if service is not None)
        if readable
        else None,
    )


def component(obj: dict[str, Any]) -> ComponentView:
    """Create the view of a component deployment."""
    metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
    name = text(spec.get("serviceName")) or text(metadata.get("name"))
    backend = text(spec.get("backendFramework"))
    return _component(spec, ("spec",), name, ("spec", "serviceName"), backend=backend, metadata=metadata)


def _component(
    spec: dict[str, Any],
    at: Location,
    name: str,
    name_at: Location,
    *,
    backend: str,
    metadata: dict[str, Any] | None = None,
) -> ComponentView:
    kind, role = text(spec.get("componentType")), spec.get("subComponentType")
    if kind == "worker" and role in ("prefill", "decode"):
        kind = role
    return ComponentView(
        words=WORDS,
        at=at,
        spec=spec,
        name=name,
        name_at=name_at,
        type="" if kind == "default" else kind,
        backend=backend,
        checkpoint=(*at, "checkpoint") if mapping(spec.get("checkpoint")).get("enabled") is True else None,
        adapted=mapping(spec.get("scalingAdapter")).get("enabled") is True,
        metadata=metadata or {},
    )
