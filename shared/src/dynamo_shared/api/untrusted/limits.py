"""Limits of texts and of the values in them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.errors import FieldError, InvalidManifest

#: The range of signed and unsigned 64-bit integers (workers use unsigned ids). Kubernetes reads larger integers as
#: floating-point numbers.
_LEAST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**64 - 1
_OBJECTS = (dict, Mapping)


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of a reader: characters of the text, number of values (an alias counts as a copy), levels of nesting."""

    characters: int
    values: int
    depth: int


#: Limits of manifests: they have a few kilobytes, and etcd stores at most 1.5 MiB of an object.
MANIFEST = ReadLimits(1024 * 1024, 250_000, 64)
#: Limits of an annotation or a key of a ConfigMap that configures one graph: twice those of 25 components with 100 values each.
SETTINGS = ReadLimits(128 * 1024, 5_000, 32)


def check_bounds(value: Any, limits: ReadLimits = MANIFEST) -> None:
    """Raises InvalidManifest for a value that is too large, too deep (or recursive), or not valid in JSON."""
    for level in _levels(value, limits):
        for each in level:
            if not isinstance(each, str | list | Mapping) and not is_of_json(each):
                words = f"an integer of {each.bit_length()} bits" if isinstance(each, int) else str(each)[:80]
                raise refusal(f"JSON has no such value: {words}")


def check_count(value: Any, limits: ReadLimits) -> None:
    """Raises InvalidManifest for a JSON value that is too large or too deep."""
    for _ in _levels(value, limits):
        pass


def _levels(value: Any, limits: ReadLimits) -> Iterator[list[Any]]:
    """The values in a value, those of each level of nesting. Raises InvalidManifest if it exceeds the limits."""
    level, count = [value], 1
    for _ in range(limits.depth):
        yield level
        below: list[Any] = []
        for each in level:
            if isinstance(each, str):  # most values; `Mapping` takes ten times as long
                continue
            inner = each if isinstance(each, list) else each.values() if isinstance(each, _OBJECTS) else ()
            count += len(inner)
            # Values are counted first, so that a list of millions is refused before it is copied.
            if count > limits.values:
                raise refusal(f"more than {limits.values} values")
            below.extend(inner)
        if not below:
            return
        level = below
    raise refusal(f"nested more than {limits.depth} levels deep")


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
