"""Checks of objects, maps and lists, composed of the checks of their items."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api.embedded.findings import Check, EmbeddedProblem, FindingsLimit, Problems, under
from dynamo_shared.api.field_errors import shown, suggestion_for
from dynamo_shared.api.rules import Violations

ObjectRule = Callable[[dict[str, Any]], Violations]
"""A rule between the fields of an object. Fields of wrong types, which their own checks report, are ignored."""

#: Limit of the fields in a message; errors in larger objects (a pod spec has 40 fields) have only a suggestion.
_LISTED_VALUES = 12


@dataclass(slots=True)
class Fields:
    """The fields of an object. A plain field only needs the exact type, which is checked without a call."""

    open: bool = False
    plain: dict[str, type] = field(default_factory=dict)
    checked: dict[str, Check] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    #: Fields (strings and lists) for which an empty value counts as missing.
    emptiable: set[str] = field(default_factory=set)
    rules: tuple[ObjectRule, ...] = ()


def object_of(fields: Fields) -> Check:
    """An object with known fields."""
    plain, checked, unknown_allowed = fields.plain, fields.checked, fields.open
    others = _between_fields(fields)

    def check(value: Any, budget: FindingsLimit) -> Problems:
        if not isinstance(value, dict):
            return budget.problem(f"must be an object, not {shown(value)}")
        collected: list[EmbeddedProblem] = []
        for name, item in value.items():
            if type(item) is plain.get(name) or (item is None and name in checked):
                continue
            inner = checked.get(name)
            if inner is None:
                problems = None if unknown_allowed else budget.problem(_unknown(name, checked))
            else:
                problems = inner(item, budget)
            if problems:
                collected += under(name, problems)
                if budget.left <= 0:
                    return collected
        others(value, budget, collected)
        return collected

    return check


def _between_fields(fields: Fields) -> Callable[[dict[str, Any], FindingsLimit, list[EmbeddedProblem]], None]:
    required, rules = fields.required, fields.rules
    emptiable = frozenset(fields.emptiable) | {name for name, kind in fields.plain.items() if kind is str}

    def check(value: dict[str, Any], budget: FindingsLimit, collected: list[EmbeddedProblem]) -> None:
        for name in required:
            item = value.get(name)
            if item is None:
                collected += budget.problem("required, and missing", name)
            elif name in emptiable and item in ("", []):
                collected += budget.problem("must not be empty", name)
        for rule in rules:
            for location, message in rule(value):
                collected += budget.problem(message, *location)
                if budget.left <= 0:
                    return

    return check


def _unknown(name: Any, known: dict[str, Check]) -> str:
    if suggestion := suggestion_for(str(name), known):
        return f"no such field{suggestion}"
    return f"no such field; there are {', '.join(sorted(known))}" if len(known) <= _LISTED_VALUES else "no such field"


def map_of(inner: Check) -> Check:
    """An object with any keys."""

    def check(value: Any, budget: FindingsLimit) -> Problems:
        if not isinstance(value, dict):
            return budget.problem(f"must be an object, not {shown(value)}")
        collected: list[EmbeddedProblem] = []
        for name, item in value.items():
            if item is not None and (problems := inner(item, budget)):
                collected += under(name, problems)
                if budget.left <= 0:
                    break
        return collected

    return check


def list_of(inner: Check, keys: tuple[tuple[str, Any], ...] = (), empty: Any = None) -> Check:
    """A list. `keys` are the fields that identify its items, each with its default.

    `empty` replaces null items; None means that null items are valid.
    """

    def check(value: Any, budget: FindingsLimit) -> Problems:
        if not isinstance(value, list):
            return budget.problem(f"must be a list, not {shown(value)}")
        collected: list[EmbeddedProblem] = []
        for index, each in enumerate(value):
            item = empty if each is None else each
            if item is not None and (problems := inner(item, budget)):
                collected += under(index, problems)
                if budget.left <= 0:
                    return collected
        if keys and len(value) > 1:
            collected += _duplicates(value, keys, budget)
        return collected

    return check


def _duplicates(items: list[Any], keys: tuple[tuple[str, Any], ...], budget: FindingsLimit) -> list[EmbeddedProblem]:
    collected: list[EmbeddedProblem] = []
    first: dict[tuple[Any, ...], int] = {}
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        identity = tuple(item.get(key, default) for key, default in keys)
        if any(not isinstance(part, str | int) or part == "" for part in identity):
            # Missing or of a wrong type: reported by the check of the item.
            continue
        if identity in first:
            same = " and ".join(f"{key} {shown(part)}" for (key, _), part in zip(keys, identity, strict=True))
            collected += budget.problem(f"has the same {same} as the item at {first[identity]}", index)
            if budget.left <= 0:
                break
        else:
            first[identity] = index
    return collected
