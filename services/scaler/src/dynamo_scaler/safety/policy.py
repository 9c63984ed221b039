"""The limits of a component: the settings, overridden by its graph's annotation. Pure."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dynamo_shared.api.contracts.scaling_policy import ANY
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import SCALING_POLICY
from dynamo_shared.api.untrusted.limits import SETTINGS
from dynamo_shared.api.untrusted.yaml_text import documents
from dynamo_shared.runtime.settings.scaler import ScalingLimits
from pydantic import ValidationError

#: Size limit of a policy: all annotations together hold at most 256 KiB, and a policy needs far less.
_LONGEST = 16_384


class InvalidPolicyError(ValueError):
    """The annotation is invalid; the message says where, and what is allowed."""


def limits_of(graph: KubeObject, component: str, defaults: ScalingLimits) -> ScalingLimits:
    """The limits of a component. InvalidPolicyError for any mistake in the annotation: a typo must remove no limit."""
    text = graph["metadata"].get("annotations", {}).get(SCALING_POLICY) or ""
    names = frozenset(each["name"] for each in graph["spec"].get("components") or ())
    return _limits(text, names | {component}, defaults)[component]


@lru_cache(64)
def _limits(text: str, names: frozenset[str], defaults: ScalingLimits) -> Mapping[str, ScalingLimits]:
    """The limits of all components. A command asks for each of its components, and each has a policy."""
    policies = _policies(text)
    unknown = sorted(policies.keys() - names - {ANY})
    if unknown:
        raise _invalid(f"there is no component {', '.join(unknown)}; there are {', '.join(sorted(names))}, and {ANY}")
    merged: dict[str, ScalingLimits] = {}
    for name in {*policies, *names}:
        overrides = [each for each in (policies.get(ANY), policies.get(name)) if each is not None]
        merged[name] = _merged(defaults, name, overrides)
    return merged


def _policies(text: str) -> dict[str, Any]:
    if not text:
        return {}
    if len(text) > _LONGEST:
        raise _invalid(f"longer than {_LONGEST} characters")
    try:
        parsed = documents(text, SETTINGS)
    except InvalidManifest as error:
        raise _invalid(f"neither YAML nor JSON: {error}") from error
    # The limits of a second document would be ignored.
    read = parsed[0] if len(parsed) == 1 else None
    if not isinstance(read, dict) or not all(isinstance(each, dict) for each in read.values()):
        raise _invalid("write an object by component, such as {Decode: {min: 2, down: {cooldown: 5m}}}")
    return {str(name): value for name, value in read.items()}


def _merged(defaults: ScalingLimits, name: str, overrides: list[Mapping[str, Any]]) -> ScalingLimits:
    whole: dict[str, Any] = defaults.model_dump(by_alias=True)
    for each in overrides:
        for field, value in _without_nulls(each).items():
            whole[field] = (
                {**whole[field], **_without_nulls(value)}
                if field in {"up", "down"} and isinstance(value, dict)
                else value
            )
    try:
        return ScalingLimits.model_validate(whole)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join([name, *map(str, first["loc"])])
        raise _invalid(f"{place}: {first['msg'].removeprefix('Value error, ')}") from error


def _without_nulls(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part without null values."""
    return {name: value for name, value in part.items() if value is not None}


def _invalid(message: str) -> InvalidPolicyError:
    return InvalidPolicyError(f"annotation {SCALING_POLICY}: {message}")
