"""How much of a text is read, and how much a value may hold."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.errors import FieldError, InvalidManifest

#: 64 bits, with a sign or without: workers write ids of the second sort. Kubernetes has no integers beyond them: its API server
#: reads these as floating-point numbers.
_LEAST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**64 - 1


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What a reader takes on: characters of the text, values in it (each as often as it is referred to), levels."""

    characters: int
    values: int
    depth: int


#: Manifests are a few kilobytes, and etcd stores 1.5 MiB of one object at most.
MANIFEST = ReadLimits(1024 * 1024, 250_000, 64)
#: An annotation, or one key of a ConfigMap, that configures one graph: 25 components with 100 values each fit twice.
SETTINGS = ReadLimits(128 * 1024, 5_000, 32)


def check_bounds(value: Any, limits: ReadLimits = MANIFEST) -> None:
    """InvalidManifest for a value that no manifest is: too large, too deep (one that holds itself), or not of JSON."""
    for each in _leaves(value, limits):
        if not is_of_json(each):
            words = f"an integer of {each.bit_length()} bits" if isinstance(each, int) else str(each)[:80]
            raise refusal(f"JSON has no such value: {words}")


def check_count(value: Any, limits: ReadLimits) -> None:
    """InvalidManifest for a value of JSON that is too large or too deep."""
    for _ in _leaves(value, limits):
        pass


def _leaves(value: Any, limits: ReadLimits) -> Iterator[Any]:
    """All that holds nothing else, while it is within the limits."""
    left = limits.values
    pending = [(value, 1)]
    while pending:
        current, depth = pending.pop()
        left -= 1
        if depth > limits.depth:
            raise refusal(f"nested more than {limits.depth} levels deep")
        inner: Any = ()
        if isinstance(current, Mapping):
            inner = current.values()
        elif isinstance(current, list):
            inner = current
        else:
            yield current
        # What waits counts, too: a list of millions is not copied before it is refused.
        if left < len(pending) + len(inner):
            raise refusal(f"more than {limits.values} values")
        pending.extend((item, depth + 1) for item in inner)


def is_of_json(value: object) -> bool:
    """Whether a value that holds no other can be written as JSON: text, a finite number, true, false or null."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return _LEAST_INTEGER <= value <= _LARGEST_INTEGER
    return isinstance(value, str | None)


def refusal(problem: str) -> InvalidManifest:
    """A text that is not read, and why."""
    return InvalidManifest([FieldError("", problem)])
