"""Rules between fields, each written in CEL for the API server and in Python for manifests that are checked without one.

A test compares the two.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Location = tuple[int | str, ...]
"""The path of a field: keys and indexes."""
Violations = Iterable[tuple[Location, str]]
"""Violations of a rule: the location, relative to the object with the rule (`()` for this object), and the message."""


@dataclass(frozen=True, slots=True)
class CelRule:
    """A rule: `cel` and `message` are for the CRD; `violations` checks the same in Python, on the object's JSON form."""

    cel: str
    message: str
    violations: Callable[[Any], Violations]


_RULES: dict[str, CelRule] = {}


def rule(cel: str, message: str) -> Callable[[Callable[[Any], Violations]], CelRule]:
    """Decorator: declares the function as the Python form of a CEL rule."""

    def register(violations: Callable[[Any], Violations]) -> CelRule:
        declared = _RULES[cel] = CelRule(cel, message, violations)
        return declared

    return register


def rule_of(cel: str) -> CelRule:
    """The rule with this CEL expression. Raises KeyError if no Python form is declared."""
    return _RULES[cel]


def validations(*rules: CelRule) -> dict[str, Any]:
    """The schema extension for rules, for `json_schema_extra`."""
    return {"x-kubernetes-validations": [{"rule": each.cel, "message": each.message} for each in rules]}
