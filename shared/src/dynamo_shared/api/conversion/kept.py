"""What an object keeps for the other version: for people to read, and for those who take it away."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.conversion import component, component_deployment, envelope, graph, request, scaling_adapter
from dynamo_shared.api.conversion.pieces import Pieces
from dynamo_shared.api.field_errors import path_of

Convert = Callable[[Any], Any]
Path = list[Any]
_TO_BETA: dict[str, Convert] = {
    resources.DYNAMO_GRAPH_DEPLOYMENTS.kind: graph.frame_to_beta,
    resources.DYNAMO_COMPONENT_DEPLOYMENTS.kind: partial(component_deployment.to_beta, object_name=None),
    resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind: scaling_adapter.to_beta,
    resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.kind: request.to_beta,
}
_TO_ALPHA: dict[str, Convert] = {
    resources.DYNAMO_GRAPH_DEPLOYMENTS.kind: graph.frame_to_alpha,
    resources.DYNAMO_COMPONENT_DEPLOYMENTS.kind: partial(component_deployment.to_alpha, object_name=None),
    resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind: scaling_adapter.to_alpha,
    resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.kind: request.to_alpha,
}


def kept_fields(obj: dict[str, Any]) -> tuple[str, ...]:
    """Paths of what an object keeps of its specification because its version has no field for it.

    They are paths of the other version, with names in place of list positions. What is kept because the other version has
    two places for one thing, or a switch that is off, is not among them.
    """
    return tuple(path_of(tuple(map(_shown, path))) for path, value in without_counterpart(obj) if not _is_off(value))


def without_counterpart(obj: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """What an object keeps of its specification, as pieces of the other version that its own has no field for."""
    if obj["kind"] not in _TO_BETA:
        return
    _, _, version = obj["apiVersion"].partition("/")
    target = graph.ALPHA if version == graph.BETA else graph.BETA
    kept = envelope.read(obj["metadata"], version, target).kept
    to_alpha = target == graph.ALPHA
    convert = (_TO_BETA if to_alpha else _TO_ALPHA)[obj["kind"]]
    yield from _without_counterpart([each for each in kept.fields if each[0][0] == "spec"], convert, [])
    for name, pieces in kept.components.items():
        above = ["spec", "services", name] if to_alpha else ["spec", "components", {"name": name}]
        yield from _without_counterpart(pieces, component.to_beta if to_alpha else component.to_alpha, above)


def _without_counterpart(pieces: Pieces, convert: Convert, above: Path) -> Iterator[tuple[Path, Any]]:
    for piece in pieces:
        if len(piece) == 2:
            path, value = piece
            # Nothing comes of it beyond what comes of an empty object.
            if convert(_alone(path, value)) in ({}, convert(_alone(path[:1], {}))):
                yield [*above, *path], value


def _alone(path: Path, value: Any) -> Any:
    """An object that has one value at a path and nothing else."""
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
