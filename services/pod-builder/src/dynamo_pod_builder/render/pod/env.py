"""Environment variables: their sources and priorities."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from dynamo_pod_builder.render.config import RenderConfig

EnvVar = dict[str, Any]

# References that Kubernetes replaces with other variables. `$$` is a dollar sign.
_REFERENCE = re.compile(r"\$(?:\$|\(([^()]+)\))")


def var(name: str, value: str) -> EnvVar:
    """A variable with a value; if that is empty, the field is omitted, as the API server stores it."""
    return {"name": name, "value": value} if value else {"name": name}


def from_field(name: str, path: str) -> EnvVar:
    """A variable with the value of a pod field."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def merge_env(*layers: Iterable[EnvVar]) -> list[EnvVar]:
    """Union by name; later layers have priority; sorted by name, so that the order of writing never rolls a pod.

    A variable that names another as `$(OTHER)` follows it, because Kubernetes replaces only references to earlier
    variables.
    """
    merged = {variable["name"]: variable for layer in layers for variable in layer}
    placed: dict[str, EnvVar] = {}
    opened: set[str] = set()
    waiting = sorted(merged, reverse=True)
    while waiting:
        name = waiting[-1]
        # Variables that name each other stay in the order of their names.
        named = () if name in opened else sorted(_named(merged[name]), reverse=True)
        first = [each for each in named if each in merged and each not in opened]
        opened.add(name)
        if first:
            waiting += first
        else:
            placed.setdefault(name, merged[waiting.pop()])
    return list(placed.values())


def _named(variable: EnvVar) -> set[str]:
    """Variables that the value of this variable references."""
    value = variable.get("value")
    if not isinstance(value, str) or "$(" not in value:
        return set()
    return {name for name in _REFERENCE.findall(value) if name}


def with_vars(variables: Iterable[EnvVar], *last: EnvVar) -> list[EnvVar]:
    """Variables with `last` at the end, replacing those of the same names."""
    return [*without_vars(variables, *(each["name"] for each in last)), *last]


def without_vars(variables: Iterable[EnvVar], *names: str) -> list[EnvVar]:
    """Variables except those of these names."""
    return [each for each in variables if each["name"] not in names]


@lru_cache(maxsize=64)
def standard(config: RenderConfig) -> tuple[EnvVar, ...]:
    """Addresses of the infrastructure that the installation names."""
    return tuple(var(name, value) for name, value in config.infrastructure)
