"""Views of v1beta1: components in a list, pods in a template, features by being there."""

from typing import Any

from dynamo_shared.api.objects import MAIN
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import integer, items, mapping, nodes, text
from dynamo_shared.api.validation.rule_set import BETA
from dynamo_shared.api.validation.view import (
    CHECKED_COMPONENTS,
    ComponentView,
    FieldValue,
    GraphView,
    Words,
    feature,
    gpus,
    started,
)

WORDS = Words(
    component="component",
    components="components",
    type="type",
    intra_pod="IntraPod",
    inter_pod="InterPod",
    topology_name="clusterTopologyName",
    gpus="resources.limits of the container main, as nvidia.com/gpu",
    gms=("experimental", "gpuMemoryService"),
    failover=("experimental", "failover"),
    adapter="scalingAdapter",
)


def graph(obj: dict[str, Any]) -> GraphView:
    """View of a graph."""
    metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
    components = spec.get("components")
    backend = text(spec.get("backendFramework"))
    # What is of a wrong type is the schema's to report.
    readable = isinstance(components, list) or (components is None and isinstance(obj.get("spec", {}), dict | None))
    some = enumerate(items(components)[:CHECKED_COMPONENTS])
    objects = [(index, each) for index, each in some if isinstance(each, dict)]
    return GraphView(
        version=BETA,
        words=WORDS,
        name=text(metadata.get("name")),
        namespace=text(metadata.get("namespace")),
        annotations=mapping(metadata.get("annotations")),
        backend=backend,
        at=("spec", "components"),
        components=tuple(
            _component(each, ("spec", "components", index), text(each.get("name")), backend) for index, each in objects
        ),
        # An item that is not an object is the schema's to report; it counts as a component all the same.
        names=tuple(text(mapping(each).get("name")) for each in items(components)) if readable else None,
        spec=spec,
        status=mapping(obj.get("status")),
    )


def component(obj: dict[str, Any]) -> ComponentView:
    """View of a component deployment."""
    metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
    name = text(spec.get("name")) or text(metadata.get("name"))
    return _component(spec, ("spec",), name, text(spec.get("backendFramework")))


def _component(spec: dict[str, Any], at: Location, name: str, backend: str) -> ComponentView:
    experimental, template = mapping(spec.get("experimental")), mapping(spec.get("podTemplate"))
    containers_at = (*at, "podTemplate", "spec", "containers")
    main, main_at = _main(mapping(template.get("spec")).get("containers"), containers_at)
    return ComponentView(
        words=WORDS,
        at=at,
        name=name,
        name_at=(*at, "name"),
        type=text(spec.get("type")),
        type_at=(*at, "type"),
        backend=backend,
        replicas=integer(spec.get("replicas")),
        nodes=nodes(spec.get("multinode")),
        gms=feature(experimental.get("gpuMemoryService"), (*at, *WORDS.gms), WORDS),
        failover=feature(experimental.get("failover"), (*at, *WORDS.failover), WORDS),
        checkpoint=(*at, "experimental", "checkpoint") if _is_on(experimental.get("checkpoint")) else None,
        adapted=isinstance(spec.get("scalingAdapter"), dict),
        gpus=gpus(mapping(main.get("resources")), (*main_at, "resources")),
        annotations=(
            FieldValue(
                mapping(mapping(template.get("metadata")).get("annotations")),
                (*at, "podTemplate", "metadata", "annotations"),
            ),
        ),
        image=FieldValue(main.get("image"), (*main_at, "image") if main else main_at),
        spec=spec,
        started=started(text(spec.get("type")), main),
    )


def _is_on(checkpoint: Any) -> bool:
    return isinstance(checkpoint, dict) and checkpoint.get("enabled") is not False


def _main(containers: Any, at: Location) -> tuple[dict[str, Any], Location]:
    """The engine's container and its place; that of the list where the pod has no such container."""
    for index, container in enumerate(items(containers)):
        if isinstance(container, dict) and container.get("name") == MAIN:
            return container, (*at, index)
    return {}, at
