"""Views of v1alpha1: services in a map, pods in many fields, features with a switch."""

from itertools import islice
from typing import Any

from dynamo_shared.api.gpus import NVIDIA_GPU
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import integer, mapping, nodes, text
from dynamo_shared.api.validation.rule_set import ALPHA
from dynamo_shared.api.validation.view import (
    CHECKED_COMPONENTS,
    ComponentView,
    Feature,
    FieldValue,
    GraphView,
    Words,
    feature,
    gpus,
    started,
)

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
    """View of a graph."""
    metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
    services = spec.get("services")
    backend = text(spec.get("backendFramework"))
    # What is of a wrong type is the schema's to report.
    readable = isinstance(services, dict) or (services is None and isinstance(obj.get("spec", {}), dict | None))
    return GraphView(
        version=ALPHA,
        words=WORDS,
        name=text(metadata.get("name")),
        namespace=text(metadata.get("namespace")),
        annotations=mapping(metadata.get("annotations")),
        backend=backend,
        at=("spec", "services"),
        components=tuple(
            _component(service, ("spec", "services", name), name, ("spec", "services", name), backend)
            for name, service in islice(mapping(services).items(), CHECKED_COMPONENTS)
            if isinstance(service, dict) and isinstance(name, str)
        ),
        names=tuple(str(name) for name, service in mapping(services).items() if service is not None)
        if readable
        else None,
        spec=spec,
        status=mapping(obj.get("status")),
    )


def component(obj: dict[str, Any]) -> ComponentView:
    """View of a component deployment."""
    metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
    name = text(spec.get("serviceName")) or text(metadata.get("name"))
    return _component(spec, ("spec",), name, ("spec", "serviceName"), text(spec.get("backendFramework")))


def _component(spec: dict[str, Any], at: Location, name: str, name_at: Location, backend: str) -> ComponentView:
    extra_spec, extra_metadata = mapping(spec.get("extraPodSpec")), mapping(spec.get("extraPodMetadata"))
    main = mapping(extra_spec.get("mainContainer"))
    kind, role = text(spec.get("componentType")), spec.get("subComponentType")
    if kind == "worker" and role in ("prefill", "decode"):
        kind = role
    return ComponentView(
        words=WORDS,
        at=at,
        name=name,
        name_at=name_at,
        type="" if kind == "default" else kind,
        type_at=(*at, "componentType"),
        backend=backend,
        replicas=integer(spec.get("replicas")),
        nodes=nodes(spec.get("multinode")),
        gms=_enabled(spec.get("gpuMemoryService"), (*at, *WORDS.gms)),
        failover=_enabled(spec.get("failover"), (*at, *WORDS.failover)),
        checkpoint=(*at, "checkpoint") if mapping(spec.get("checkpoint")).get("enabled") is True else None,
        adapted=mapping(spec.get("scalingAdapter")).get("enabled") is True,
        gpus=_gpus(mapping(spec.get("resources")), (*at, "resources"))
        or gpus(mapping(main.get("resources")), (*at, "extraPodSpec", "mainContainer", "resources")),
        annotations=(
            FieldValue(mapping(spec.get("annotations")), (*at, "annotations")),
            FieldValue(mapping(extra_metadata.get("annotations")), (*at, "extraPodMetadata", "annotations")),
        ),
        image=FieldValue(main.get("image"), (*at, "extraPodSpec", "mainContainer", "image")),
        spec=spec,
        started=started(kind, main),
    )


def _enabled(value: Any, at: Location) -> Feature | None:
    return feature(value, at, WORDS) if mapping(value).get("enabled") is True else None


def _gpus(resources: dict[str, Any], at: Location) -> FieldValue | None:
    for kind in ("limits", "requests"):
        amounts = mapping(resources.get(kind))
        if amounts.get("gpu") not in (None, ""):
            return FieldValue(amounts["gpu"], (*at, kind, "gpu"))
        custom = mapping(amounts.get("custom"))
        if custom.get(NVIDIA_GPU) not in (None, ""):
            return FieldValue(custom[NVIDIA_GPU], (*at, kind, "custom", NVIDIA_GPU))
    return None
