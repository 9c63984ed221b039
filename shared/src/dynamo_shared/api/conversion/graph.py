"""Converts a graph: its components separately, and the rest (the frame)."""

from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.conversion import component_lens, status
from dynamo_shared.api.conversion.envelope import Preserved
from dynamo_shared.api.conversion.lens import Lens, carry, of_parts
from dynamo_shared.api.untrusted.reading import mapping

_SAME = (
    *("annotations", "labels", "priorityClassName", "backendFramework"),
    *("restart", "experimental", "providerOverride"),
)
ALPHA, BETA = "v1alpha1", "v1beta1"


@dataclass(slots=True)
class GraphParts:
    """The frame of a graph, whose `services` or `components` is empty, and its components by name."""

    frame: dict[str, Any]
    components: dict[str, Any]


def convert(body: dict[str, Any], preserved: Preserved, target: str) -> tuple[dict[str, Any], Preserved]:
    """The body of a graph in version `target`, and the data that it must preserve."""
    to_preserve = Preserved()
    if target == BETA:
        parts = _of_services(body)
        frame, to_preserve.fields = carry(TO_BETA, parts.frame, preserved.fields)
    else:
        parts = _of_components(body)
        frame, to_preserve.fields = carry(TO_ALPHA, parts.frame, preserved.fields)
        names = list(parts.components)
        to_preserve.order = names if names != sorted(names) else None
    converted: dict[str, Any] = {}
    for name, each in parts.components.items():
        changes = preserved.components.get(name, [])
        if target == BETA:
            # A change must not replace the whole component or its name.
            changes = [change for change in changes if change[0] not in ([], ["name"])]
            result, residue = carry(component_lens.TO_BETA, each, changes)
            converted[name] = component_lens.unmarked(result)
        else:
            converted[name], residue = carry(component_lens.TO_ALPHA, component_lens.marked(each), changes)
        if residue:
            to_preserve.components[name] = residue
    if parts.components:
        frame = {**frame, "spec": {**frame["spec"], **_together(converted, preserved, target)}}
    return frame, to_preserve


def frame_to_beta(frame: dict[str, Any]) -> dict[str, Any]:
    """The v1beta1 frame of a v1alpha1 frame."""

    def convert(spec: dict[str, Any]) -> dict[str, Any]:
        nothing: dict[str, Any] = {"components": []} if spec.get("services") == {} else {}
        return {**_spec(spec, "envs", "env", "topologyProfile", "clusterTopologyName"), **nothing}

    return of_parts(frame, convert, status.graph_to_beta)


def frame_to_alpha(frame: dict[str, Any]) -> dict[str, Any]:
    """The v1alpha1 frame of a v1beta1 frame."""

    def convert(spec: dict[str, Any]) -> dict[str, Any]:
        nothing: dict[str, Any] = {"services": {}} if spec.get("components") == [] else {}
        return {**_spec(spec, "env", "envs", "clusterTopologyName", "topologyProfile"), **nothing}

    return of_parts(frame, convert, status.graph_to_alpha)


def _spec(spec: dict[str, Any], env: str, env_there: str, topology: str, topology_there: str) -> dict[str, Any]:
    result = {name: spec[name] for name in _SAME if name in spec}
    if env in spec:
        result[env_there] = spec[env]
    constraint = spec.get("topologyConstraint")
    if isinstance(constraint, dict):
        result["topologyConstraint"] = {
            target: constraint[source]
            for source, target in ((topology, topology_there), ("packDomain", "packDomain"))
            if source in constraint
        }
    return result


def _of_services(body: dict[str, Any]) -> GraphParts:
    spec = mapping(body.get("spec"))
    services = spec.get("services")
    if not isinstance(services, dict):
        return GraphParts(body, {})
    return GraphParts({**body, "spec": {**spec, "services": {}}}, services)


def _of_components(body: dict[str, Any]) -> GraphParts:
    """The frame, and the components by name. An invalid list (with missing or duplicate names) remains in the frame."""
    spec = mapping(body.get("spec"))
    components = spec.get("components")
    if not isinstance(components, list):
        return GraphParts(body, {})
    named: dict[str, Any] = {}
    for each in components:
        name = mapping(each).get("name")
        if not isinstance(name, str) or name in named:
            return GraphParts(body, {})
        named[name] = {field: value for field, value in each.items() if field != "name"}
    return GraphParts({**body, "spec": {**spec, "components": []}}, named)


def _together(converted: dict[str, Any], preserved: Preserved, target: str) -> dict[str, Any]:
    if target == ALPHA:
        return {"services": converted}
    first = [name for name in dict.fromkeys(preserved.order or ()) if name in converted]
    names = first + sorted(converted.keys() - set(first))
    return {"components": [{"name": name, **converted[name]} for name in names]}


TO_BETA = Lens(frame_to_beta, frame_to_alpha)
TO_ALPHA = Lens(frame_to_alpha, frame_to_beta)
