"""What the Go operator kept of an object in its annotation: read once, when the object first gets to the other version.

The operator stores each object in one version, with an envelope of what only the other one says (operator behaviour, section
9.9): a part of the spec of that other version. A graph that was written in v1beta1 and stored by 1.2 to 1.4 has the subPath
of its mounts only there, and one that was written in v1alpha1 and stored by 1.5 its ingress. Requests have it in each release.
"""

from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.containers import containers_of, with_containers
from dynamo_shared.api.conversion import operators_request
from dynamo_shared.api.conversion.envelope import Kept
from dynamo_shared.api.conversion.graph import BETA
from dynamo_shared.api.conversion.pieces import Pieces
from dynamo_shared.api.registry.annotations import (
    OPERATOR_COMPONENT_SPEC,
    OPERATOR_GRAPH_SPEC,
    OPERATOR_REQUEST_SPEC,
    PRESERVED_FIELDS,
)
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.reading import mapping, text

_GRAPH = resources.DYNAMO_GRAPH_DEPLOYMENTS.kind
_COMPONENT = resources.DYNAMO_COMPONENT_DEPLOYMENTS.kind
_REQUEST = resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.kind
#: The annotation of each kind that has one.
ANNOTATIONS = {
    _GRAPH: OPERATOR_GRAPH_SPEC,
    _COMPONENT: OPERATOR_COMPONENT_SPEC,
    _REQUEST: OPERATOR_REQUEST_SPEC,
}
#: Lists that a service has fields for: what is not in them any more was taken out.
_LISTS = ("env", "envFrom", "volumeMounts")


@dataclass(slots=True)
class OperatorsPart:
    """What was kept for the version that an object gets, and the object's metadata without it."""

    metadata: dict[str, Any]
    kept: Kept = field(default_factory=Kept)
    components: list[dict[str, Any]] = field(default_factory=list)


def read(kind: str, metadata: dict[str, Any], target: str) -> OperatorsPart:
    """The operator's part for `target`. Where there is none, or the platform's own annotation is there, nothing changes."""
    annotations = mapping(metadata.get("annotations"))
    annotation = ANNOTATIONS.get(kind, "")
    envelope = _envelope(annotations.get(annotation))
    spec = envelope.get("spec")
    if PRESERVED_FIELDS in annotations or not isinstance(spec, dict) or not _is_for(kind, spec, target):
        return OperatorsPart(metadata)
    rest = {name: value for name, value in annotations.items() if name != annotation}
    left = {name: value for name, value in metadata.items() if name != "annotations"}
    result = OperatorsPart({**left, "annotations": rest} if rest else left)
    if kind == _REQUEST:
        result.kept = Kept(operators_request.pieces(spec, to_beta=target == BETA))
    elif kind == _COMPONENT and target == BETA:
        result.components = [spec]
    elif kind == _COMPONENT:
        result.kept = Kept([[["spec", *piece[0]], *piece[1:]] for piece in [*_unnamed(envelope), *_pieces(spec)]])
    elif target == BETA:
        result.components = [each for each in spec["components"] if isinstance(each, dict)]
        names = list(_by_name(result.components))
        result.kept = Kept(order=names if names != sorted(names) else None)
    else:
        services = spec.get("services") or {}
        components = {name: _pieces(each) for name, each in services.items() if isinstance(each, dict)}
        result.kept = Kept([[["spec", "pvcs"], spec["pvcs"]]] if "pvcs" in spec else [], components)
    return result


def completed(kind: str, body: dict[str, Any], part: OperatorsPart) -> dict[str, Any]:
    """A v1beta1 object with what was kept of its components; what the object says itself stays."""
    spec = body.get("spec")
    if not part.components or not isinstance(spec, dict):
        return body
    if kind == _COMPONENT:
        return {**body, "spec": _component(spec, part.components[0])}
    kept = _by_name(part.components)
    components = spec.get("components")
    if not kept or not isinstance(components, list):
        return body
    made = [_component(each, kept[name]) if (name := _name(each)) in kept else each for each in components]
    return {**body, "spec": {**spec, "components": made}}


def _envelope(value: Any) -> dict[str, Any]:
    """What an annotation has; empty where the operator did not write it."""
    if not isinstance(value, str):
        return {}
    try:
        envelope = mapping(json_text.decode(value))
    except json_text.InvalidJson:
        return {}
    return envelope if envelope.get("version") == 1 else {}


def _name(each: Any) -> str:
    """The name of an entry of a list; empty where it has none: what was kept may be anything."""
    return text(mapping(each).get("name"))


def _by_name(entries: list[Any]) -> dict[str, dict[str, Any]]:
    return {name: each for each in entries if (name := _name(each))}


def _is_for(kind: str, spec: dict[str, Any], target: str) -> bool:
    """Whether a part of a spec may be one of the version: an object that was moved by hand may have the wrong one."""
    if kind == _REQUEST:
        return operators_request.is_for(spec, to_beta=target == BETA)
    if kind == _COMPONENT:
        return bool(spec.keys() & {"name", "podTemplate"}) == (target == BETA)
    if target == BETA:
        return isinstance(spec.get("components"), list)
    return isinstance(spec.get("services") or {}, dict) and bool(spec.keys() & {"services", "pvcs"})


def _unnamed(envelope: dict[str, Any]) -> Pieces:
    """The operator's record of a component deployment that had no `serviceName`: v1beta1 has the object's name there."""
    records = envelope.get("rawJSON")
    unnamed = {"path": "serviceName", "nil": True}
    return [[["serviceName"]]] if isinstance(records, list) and unnamed in records else []


def _component(live: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """A component whose containers have what a service has no field for, and which names its front end."""
    template, known = live.get("podTemplate"), _by_name(containers_of(kept.get("podTemplate")))
    made = dict(live)
    if known and containers_of(template):
        made["podTemplate"] = with_containers(
            template, lambda listed: [_filled(each, known.get(_name(each))) for each in listed]
        )
    front_end = kept.get("frontendSidecar")
    if isinstance(front_end, str) and front_end in map(_name, containers_of(template)):
        made.setdefault("frontendSidecar", front_end)
    return made


def _filled(live: Any, kept: Any) -> Any:
    """A container with the fields of `kept` that it lacks, and so each of its mounts; none is added."""
    if not isinstance(live, dict) or not isinstance(kept, dict):
        return live
    mounts, known = live.get("volumeMounts"), kept.get("volumeMounts")
    result = {
        **{name: value for name, value in kept.items() if value not in operators_request.UNSET and name not in _LISTS},
        **live,
    }
    if isinstance(mounts, list) and isinstance(known, list):
        of_mount = {_place(each): each for each in known if isinstance(each, dict)}
        result["volumeMounts"] = [
            {**of_mount.get(_place(each), {}), **each} if isinstance(each, dict) else each for each in mounts
        ]
    return result


def _place(mount: dict[str, Any]) -> tuple[str, str]:
    return str(mount.get("name")), str(mount.get("mountPath"))


def _pieces(service: dict[str, Any]) -> Pieces:
    """A piece for each field that was kept; conversion puts on those that contradict nothing."""
    pieces: Pieces = []
    for name, value in service.items():
        if name in ("gpuMemoryService", "failover", "checkpoint") and isinstance(value, dict):
            pieces += [[[name, key], each] for key, each in value.items()] if value.get("enabled") is not False else []
            pieces += [[[name], value]] if not value.get("enabled") else []
        else:
            pieces.append([[name], value])
    return pieces
