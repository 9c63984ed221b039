"""What an object keeps for the other version, for people to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.conversion import component, component_deployment, envelope, graph, request, scaling_adapter
from dynamo_shared.api.conversion.pieces import Pieces
from dynamo_shared.api.field_errors import path_of

Convert = Callable[[Any], Any]
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
    _, _, version = obj["apiVersion"].partition("/")
    target = graph.ALPHA if version == graph.BETA else graph.BETA
    kept = envelope.read(obj["metadata"], version, target).kept
    says, of_component, list_name = (
        (_TO_BETA, component.to_beta, "services")
        if target == graph.ALPHA
        else (_TO_ALPHA, component.to_alpha, "components")
    )
    convert = says[obj["kind"]]
    paths = list(_unsayable([each for each in kept.fields if each[0][0] == "spec"], convert, ()))
    for name, pieces in kept.components.items():
        paths += _unsayable(pieces, of_component, ("spec", list_name, name))
    return tuple(paths)


def _unsayable(pieces: Pieces, convert: Convert, above: tuple[str, ...]) -> Iterator[str]:
    for piece in pieces:
        if len(piece) == 2 and not (isinstance(piece[1], dict) and piece[1].get("enabled") is False):
            path, value = piece
            # Nothing comes of it beyond what comes of an empty object.
            if convert(_alone(path, value)) in ({}, convert(_alone(path[:1], {}))):
                yield path_of((*above, *map(_shown, path)))


def _alone(path: list[Any], value: Any) -> Any:
    """An object that has one value at a path and nothing else."""
    for step in reversed(path):
        if isinstance(step, str):
            value = {step: value}
        elif isinstance(step, dict):
            value = [{**value, **step}] if isinstance(value, dict) else [value]
        else:
            value = [value]
    return value


def _shown(step: Any) -> str | int:
    if isinstance(step, dict):
        (name,) = step.values()
        return str(name)
    return step if isinstance(step, int) else str(step)
