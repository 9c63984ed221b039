"""Limits of texts and of the values in them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.errors import FieldError, InvalidManifest

#: The range of signed and unsigned 64-bit integers (workers use unsigned ids). Kubernetes reads larger integers as
#: floating-point numbers.
_LEAST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**64 - 1


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of a reader: characters of the text, number of values (an alias counts as a copy), levels of nesting."""

    characters: int
    values: int
    depth: int


#: Limits of manifests: they have a few kilobytes, and etcd stores at most 1.5 MiB of an object.
MANIFEST = ReadLimits(1024 * 1024, 250_000, 64)
#: Limits of an annotation or a key of a ConfigMap that configures one graph: twice those of 25 components with 100
#: values each.
SETTINGS = ReadLimits(128 * 1024, 5_000, 32)


def check_bounds(value: Any, limits: ReadLimits = MANIFEST) -> None:
    """Raises InvalidManifest for a value that is too large, too deep (or recursive), or not valid in JSON."""
    for each in _leaves(value, limits):
        if not is_of_json(each):
            words = f"an integer of {each.bit_length()} bits" if isinstance(each, int) else str(each)[:80]
            raise refusal(f"JSON has no such value: {words}")


def check_count(value: Any, limits: ReadLimits) -> None:
    """Raises InvalidManifest for a JSON value that is too large or too deep."""
    for _ in _leaves(value, limits):
        pass


def _leaves(value: Any, limits: ReadLimits) -> Iterator[Any]:
    """The scalar values in a value. Raises InvalidManifest if it exceeds the limits."""
    remaining = limits.values
    pending = [(value, 1)]
    while pending:
        current, depth = pending.pop()
        remaining -= 1
        if depth > limits.depth:
            raise refusal(f"nested more than {limits.depth} levels deep")
        inner: Any = ()
        if isinstance(current, str):  # most values; the next test takes ten times as long
            yield current
        elif isinstance(current, Mapping):
            inner = current.values()
        elif isinstance(current, list):
            inner = current
        else:
            yield current
        # Pending values count, too, so that a list of millions is refused before it is copied.
        if remaining < len(pending) + len(inner):
            raise refusal(f"more than {limits.values} values")
        pending.extend((item, depth + 1) for item in inner)


def is_of_json(value: object) -> bool:
    """Whether a scalar value can be written as JSON: a string, a finite number, true, false or null."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return _LEAST_INTEGER <= value <= _LARGEST_INTEGER
    return isinstance(value, str | None)


def refusal(problem: str) -> InvalidManifest:
    """The error for a text that is refused."""
    return InvalidManifest([FieldError("", problem)])
