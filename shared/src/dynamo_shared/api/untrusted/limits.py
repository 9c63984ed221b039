"""How much of a text is read, and how much a value may hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.errors import FieldError, InvalidManifest

#: Kubernetes has no larger integers: its API server reads them as floating-point numbers.
_LARGEST_INTEGER = 2**63


@dataclass(frozen=True, slots=True)
class Limits:
    """What a reader takes on: characters of the text, values in it (each as often as it is referred to), levels."""

    characters: int
    values: int
    depth: int


#: Manifests are a few kilobytes, and etcd stores 1.5 MiB of one object at most.
MANIFEST = Limits(1024 * 1024, 250_000, 64)
#: An annotation, or one key of a ConfigMap, that configures one graph: 25 components with 100 values each fit twice.
SETTINGS = Limits(128 * 1024, 5_000, 32)


def check_bounds(value: Any, limits: Limits = MANIFEST) -> None:
    """InvalidManifest for a value that no manifest is: too large, too deep (one that holds itself), or not of JSON."""
    left = limits.values
    pending = [(value, 1)]
    while pending:
        current, depth = pending.pop()
        left -= 1
        if depth > limits.depth:
            raise refusal(f"nested more than {limits.depth} levels deep")
        # What waits counts, too: a list of millions must not be copied before it is refused.
        if left < len(pending):
            raise refusal(f"more than {limits.values} values")
        if isinstance(current, Mapping):
            if len(current) > left:
                raise refusal(f"more than {limits.values} values")
            pending.extend((item, depth + 1) for item in current.values())
        elif isinstance(current, list):
            if len(current) > left:
                raise refusal(f"more than {limits.values} values")
            pending.extend((item, depth + 1) for item in current)
        elif not is_of_json(current):
            raise refusal(f"JSON has no such value: {str(current)[:80]}")


def is_of_json(value: object) -> bool:
    """Whether a value that holds no other can be written as JSON: text, a finite number, true, false or null."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) <= _LARGEST_INTEGER
    return isinstance(value, str | None)


def refusal(problem: str) -> InvalidManifest:
    """A text that is not read, and why."""
    return InvalidManifest([FieldError("", problem)])
