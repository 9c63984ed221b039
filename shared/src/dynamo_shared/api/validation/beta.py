"""Views of v1beta1: components in a list, pods in a template, features that are on if present."""

from typing import Any

from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import items, mapping, text
from dynamo_shared.api.validation.rule_set import BETA
from dynamo_shared.api.validation.view import CHECKED_COMPONENTS, ComponentView, GraphView, Words

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
    """Create the view of a graph."""
    spec = mapping(obj.get("spec"))
    components, backend = spec.get("components"), text(spec.get("backendFramework"))
    # The schema reports values of a wrong type.
    readable = isinstance(components, list) or (components is None and isinstance(obj.get("spec", {}), dict | None))
    some = enumerate(items(components)[:CHECKED_COMPONENTS])
    objects = [(index, each) for index, each in some if isinstance(each, dict)]
    return GraphView(
        version=BETA,
        words=WORDS,
        obj=obj,
        components=tuple(
            _component(each, ("spec", "components", index), text(each.get("name")), backend) for index, each in objects
        ),
        # The schema reports an item that is not an object; the item still counts as a component.
        names=tuple(text(mapping(each).get("name")) for each in items(components)) if readable else None,
    )


def component(obj: dict[str, Any]) -> ComponentView:
    """Create the view of a component deployment."""
    metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
    name = text(spec.get("name")) or text(metadata.get("name"))
    return _component(spec, ("spec",), name, text(spec.get("backendFramework")), metadata)


def _component(
    spec: dict[str, Any], at: Location, name: str, backend: str, metadata: dict[str, Any] | None = None
) -> ComponentView:
    checkpoint = mapping(spec.get("experimental")).get("checkpoint")
    is_on = isinstance(checkpoint, dict) and checkpoint.get("enabled") is not False
    return ComponentView(
        words=WORDS,
        at=at,
        spec=spec,
        name=name,
        name_at=(*at, "name"),
        type=text(spec.get("type")),
        backend=backend,
        checkpoint=(*at, "experimental", "checkpoint") if is_on else None,
        adapted=isinstance(spec.get("scalingAdapter"), dict),
        metadata=metadata or {},
    )
