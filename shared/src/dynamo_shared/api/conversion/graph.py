"""A graph: its frame, and its components each on its own, so that a change of one costs the others nothing."""

from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.conversion import component_lens, status
from dynamo_shared.api.conversion.envelope import Kept
from dynamo_shared.api.conversion.lens import Lens, carry, of_parts
from dynamo_shared.api.untrusted.reading import mapping

_SAME = (
    *("annotations", "labels", "priorityClassName", "backendFramework"),
    *("restart", "experimental", "providerOverride"),
)
ALPHA, BETA = "v1alpha1", "v1beta1"


@dataclass(slots=True)
class GraphParts:
    """A graph taken apart: the frame has an empty `services` or `components` where its components were."""

    frame: dict[str, Any]
    components: dict[str, Any]


def convert(body: dict[str, Any], kept: Kept, target: str) -> tuple[dict[str, Any], Kept]:
    """Body of a graph in version `target`, and what the source must keep there."""
    left = Kept()
    if target == BETA:
        parts = _of_services(body)
        frame, left.fields = carry(TO_BETA, parts.frame, kept.fields)
    else:
        parts = _of_components(body)
        frame, left.fields = carry(TO_ALPHA, parts.frame, kept.fields)
        names = list(parts.components)
        left.order = names if names != sorted(names) else None
    made: dict[str, Any] = {}
    for name, each in parts.components.items():
        pieces = kept.components.get(name, [])
        if target == BETA:
            # A component is an object with this name, whatever a piece says.
            pieces = [piece for piece in pieces if piece[0] not in ([], ["name"])]
            result, residue = carry(component_lens.TO_BETA, each, pieces)
            made[name] = component_lens.unmarked(result)
        else:
            made[name], residue = carry(component_lens.TO_ALPHA, component_lens.marked(each), pieces)
        if residue:
            left.components[name] = residue
    if parts.components:
        frame = {**frame, "spec": {**frame["spec"], **_together(made, kept, target)}}
    return frame, left


def frame_to_beta(frame: dict[str, Any]) -> dict[str, Any]:
    """v1beta1 graph without its components."""

    def convert(spec: dict[str, Any]) -> dict[str, Any]:
        nothing: dict[str, Any] = {"components": []} if spec.get("services") == {} else {}
        return {**_spec(spec, "envs", "env", "topologyProfile", "clusterTopologyName"), **nothing}

    return of_parts(frame, convert, status.graph_to_beta)


def frame_to_alpha(frame: dict[str, Any]) -> dict[str, Any]:
    """v1alpha1 graph without its services."""

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
    """Components by name. A list that no API server takes, without names or with one twice, stays in the frame."""
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


def _together(made: dict[str, Any], kept: Kept, target: str) -> dict[str, Any]:
    if target == ALPHA:
        return {"services": made}
    first = [name for name in dict.fromkeys(kept.order or ()) if name in made]
    names = first + sorted(made.keys() - set(first))
    return {"components": [{"name": name, **made[name]} for name in names]}


TO_BETA = Lens(frame_to_beta, frame_to_alpha)
TO_ALPHA = Lens(frame_to_alpha, frame_to_beta)
