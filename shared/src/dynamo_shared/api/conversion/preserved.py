"""Lists the fields that an object preserves for the other version."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.conversion import component, component_deployment, envelope, graph, request, scaling_adapter
from dynamo_shared.api.conversion.changes import Changes
from dynamo_shared.api.field_errors import path_of

Convert = Callable[[Any], Any]
Path = list[Any]
#: The conversions of a kind to v1beta1 and to v1alpha1.
_CONVERSIONS: dict[str, tuple[Convert, Convert]] = {
    resources.DYNAMO_GRAPH_DEPLOYMENTS.kind: (graph.frame_to_beta, graph.frame_to_alpha),
    resources.DYNAMO_COMPONENT_DEPLOYMENTS.kind: (
        partial(component_deployment.to_beta, object_name=None),
        partial(component_deployment.to_alpha, object_name=None),
    ),
    resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind: (scaling_adapter.to_beta, scaling_adapter.to_alpha),
    resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.kind: (request.to_beta, request.to_alpha),
}


def preserved_fields(obj: dict[str, Any]) -> tuple[str, ...]:
    """Paths of the preserved spec fields for which the object's version has no field.

    The paths are those of the other version, with names instead of list positions. Fields that are preserved only
    because the other version has two equivalent fields, or has a feature switched off, are omitted.
    """
    return tuple(path_of(tuple(map(_shown, path))) for path, value in without_counterpart(obj) if not _is_off(value))


def without_counterpart(obj: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Path (of the other version) and value of the preserved spec fields that the object's version does not have."""
    if obj["kind"] not in _CONVERSIONS:
        return
    _, _, version = obj["apiVersion"].partition("/")
    target = graph.ALPHA if version == graph.BETA else graph.BETA
    preserved = envelope.read(obj["metadata"], version, target).preserved
    to_alpha = target == graph.ALPHA
    convert = _CONVERSIONS[obj["kind"]][not to_alpha]
    yield from _without_counterpart([each for each in preserved.fields if each[0][0] == "spec"], convert, [])
    for name, changes in preserved.components.items():
        above = ["spec", "services", name] if to_alpha else ["spec", "components", {"name": name}]
        yield from _without_counterpart(changes, component.to_beta if to_alpha else component.to_alpha, above)


def _without_counterpart(changes: Changes, convert: Convert, above: Path) -> Iterator[tuple[Path, Any]]:
    for change in changes:
        if len(change) == 2:
            path, value = change
            # The converted value is the same as for an empty object.
            if convert(_alone(path, value)) in ({}, convert(_alone(path[:1], {}))):
                yield [*above, *path], value


def _alone(path: Path, value: Any) -> Any:
    """An object with one value at a path and no other fields."""
    for step in reversed(path):
        if isinstance(step, str):
            value = {step: value}
        elif isinstance(step, dict):
            value = [{**value, **step}] if isinstance(value, dict) else [value]
        else:
            value = [value]
    return value


def _is_off(value: Any) -> bool:
    return isinstance(value, dict) and value.get("enabled") is False


def _shown(step: Any) -> str | int:
    if isinstance(step, dict):
        (name,) = step.values()
        return str(name)
    return step if isinstance(step, int) else str(step)
