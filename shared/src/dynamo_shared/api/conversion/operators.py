"""Reads the annotation in which the reference operator preserves fields, once, at the first conversion of an object.

The operator stores each object in one version, with an annotation for fields that only the other version has (operator
behaviour, section 9.9): a partial spec of that version. For example, a graph that was written in v1beta1 and stored by
1.2 to 1.4 has the subPath of its mounts only there; a graph that was written in v1alpha1 and stored by 1.5, its
ingress. Requests have the annotation in all releases.
"""

from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.containers import containers_of, with_containers
from dynamo_shared.api.conversion import operators_request
from dynamo_shared.api.conversion.changes import Changes
from dynamo_shared.api.conversion.envelope import Preserved
from dynamo_shared.api.conversion.graph import BETA
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
#: The operator's annotation, by kind.
ANNOTATIONS = {_GRAPH: OPERATOR_GRAPH_SPEC, _COMPONENT: OPERATOR_COMPONENT_SPEC, _REQUEST: OPERATOR_REQUEST_SPEC}
#: Lists for which a service has fields: an item that is missing in a service was removed.
_LISTS = ("env", "envFrom", "volumeMounts")


@dataclass(slots=True)
class OperatorData:
    """The data that the operator preserved for the target version, and the object's metadata without the annotation."""

    metadata: dict[str, Any]
    preserved: Preserved = field(default_factory=Preserved)
    components: list[dict[str, Any]] = field(default_factory=list)


def read(kind: str, metadata: dict[str, Any], target: str) -> OperatorData:
    """The operator's data for `target`. Without such data, or with this platform's own annotation, the metadata is unchanged."""
    annotations = mapping(metadata.get("annotations"))
    annotation = ANNOTATIONS.get(kind, "")
    envelope = _envelope(annotations.get(annotation))
    spec = envelope.get("spec")
    if PRESERVED_FIELDS in annotations or not isinstance(spec, dict) or not _is_for(kind, spec, target):
        return OperatorData(metadata)
    rest = {name: value for name, value in annotations.items() if name != annotation}
    others = {name: value for name, value in metadata.items() if name != "annotations"}
    result = OperatorData({**others, "annotations": rest} if rest else others)
    if kind == _REQUEST:
        result.preserved = Preserved(operators_request.changes(spec, to_beta=target == BETA))
    elif kind == _COMPONENT and target == BETA:
        result.components = [spec]
    elif kind == _COMPONENT:
        result.preserved = Preserved(
            [[["spec", *change[0]], *change[1:]] for change in [*_unnamed(envelope), *_changes(spec)]]
        )
    elif target == BETA:
        result.components = [each for each in spec["components"] if isinstance(each, dict)]
        names = list(_by_name(result.components))
        result.preserved = Preserved(order=names if names != sorted(names) else None)
    else:
        services = spec.get("services") or {}
        components = {name: _changes(each) for name, each in services.items() if isinstance(each, dict)}
        result.preserved = Preserved([[["spec", "pvcs"], spec["pvcs"]]] if "pvcs" in spec else [], components)
    return result


def completed(kind: str, body: dict[str, Any], part: OperatorData) -> dict[str, Any]:
    """A v1beta1 object, completed with the preserved fields of its components; fields of the object have priority."""
    spec = body.get("spec")
    if not part.components or not isinstance(spec, dict):
        return body
    if kind == _COMPONENT:
        return {**body, "spec": _component(spec, part.components[0])}
    preserved = _by_name(part.components)
    components = spec.get("components")
    if not preserved or not isinstance(components, list):
        return body
    result = [_component(each, preserved[name]) if (name := _name(each)) in preserved else each for each in components]
    return {**body, "spec": {**spec, "components": result}}


def _envelope(value: Any) -> dict[str, Any]:
    """The content of the annotation; empty if the operator did not write it."""
    if not isinstance(value, str):
        return {}
    try:
        envelope = mapping(json_text.decode(value))
    except json_text.InvalidJson:
        return {}
    return envelope if envelope.get("version") == 1 else {}


def _name(each: Any) -> str:
    """The name of an entry of a list, which may be any value; empty without a name."""
    return text(mapping(each).get("name"))


def _by_name(entries: list[Any]) -> dict[str, dict[str, Any]]:
    return {name: each for each in entries if (name := _name(each))}


def _is_for(kind: str, spec: dict[str, Any], target: str) -> bool:
    """Whether a partial spec may be of the target version; after a manual change of an object it may be of the other one."""
    if kind == _REQUEST:
        return operators_request.is_for(spec, to_beta=target == BETA)
    if kind == _COMPONENT:
        return bool(spec.keys() & {"name", "podTemplate"}) == (target == BETA)
    if target == BETA:
        return isinstance(spec.get("components"), list)
    return isinstance(spec.get("services") or {}, dict) and bool(spec.keys() & {"services", "pvcs"})


def _unnamed(envelope: dict[str, Any]) -> Changes:
    """The change that removes `serviceName` if the operator recorded that a component deployment had none; v1beta1 has
    the object's name instead.
    """
    records = envelope.get("rawJSON")
    unnamed = {"path": "serviceName", "nil": True}
    return [[["serviceName"]]] if isinstance(records, list) and unnamed in records else []


def _component(live: dict[str, Any], preserved: dict[str, Any]) -> dict[str, Any]:
    """A component, completed with the preserved fields of its containers and with its frontend sidecar."""
    template, known = live.get("podTemplate"), _by_name(containers_of(preserved.get("podTemplate")))
    result = dict(live)
    if known and containers_of(template):
        result["podTemplate"] = with_containers(
            template, lambda listed: [_filled(each, known.get(_name(each))) for each in listed]
        )
    front_end = preserved.get("frontendSidecar")
    if isinstance(front_end, str) and front_end in map(_name, containers_of(template)):
        result.setdefault("frontendSidecar", front_end)
    return result


def _filled(live: Any, preserved: Any) -> Any:
    """A container, completed with the fields of `preserved`, also in each of its mounts; no mount is added."""
    if not isinstance(live, dict) or not isinstance(preserved, dict):
        return live
    mounts, known = live.get("volumeMounts"), preserved.get("volumeMounts")
    result = {
        **{
            name: value
            for name, value in preserved.items()
            if value not in operators_request.UNSET and name not in _LISTS
        },
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


def _changes(service: dict[str, Any]) -> Changes:
    """Separate changes for the preserved fields; conversion applies those that contradict no field."""
    changes: Changes = []
    for name, value in service.items():
        if name in ("gpuMemoryService", "failover", "checkpoint") and isinstance(value, dict):
            changes += [[[name, key], each] for key, each in value.items()] if value.get("enabled") is not False else []
            changes += [[[name], value]] if not value.get("enabled") else []
        else:
            changes.append([[name], value])
    return changes
