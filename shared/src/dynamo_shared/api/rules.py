"""Rules between fields.

Each is written twice, side by side: in CEL for the API server, in Python for manifests that have not met one yet.
A test holds the two together.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Location = tuple[int | str, ...]
"""Steps to a field: keys and indexes."""
Violations = Iterable[tuple[Location, str]]
"""What breaks a rule: where, from the place that the rule stands at (`()` for the place itself), and what is wrong."""


@dataclass(frozen=True, slots=True)
class CelRule:
    """`cel` and `message` go to the CRD; `violations` finds the same in the JSON form of what the rule is on."""

    cel: str
    message: str
    violations: Callable[[Any], Violations]


_TWINS: dict[str, CelRule] = {}


def rule(cel: str, message: str) -> Callable[[Callable[[Any], Violations]], CelRule]:
    """Decorator: the function becomes the Python twin of a CEL rule."""

    def register(violations: Callable[[Any], Violations]) -> CelRule:
        made = CelRule(cel, message, violations)
        _TWINS[cel] = made
        return made

    return register


def twin(cel: str) -> CelRule:
    """The rule of a CEL expression of a schema; KeyError where it has no Python side."""
    return _TWINS[cel]


def validations(*rules: CelRule) -> dict[str, Any]:
    """Schema extension that carries rules, for `json_schema_extra`."""
    return {"x-kubernetes-validations": [{"rule": each.cel, "message": each.message} for each in rules]}
