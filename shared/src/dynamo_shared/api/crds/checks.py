"""All rules of a schema as one function of a value, which visits only parts with rules."""

from collections.abc import Callable, Iterator
from typing import Any

from dynamo_shared.api.crds.structural import Schema
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.rules import Location, rule_of

Check = Callable[[Any, Location], Iterator[tuple[Location, str]]]
"""Takes a value and its location, and yields its violations: the location and the message."""


def checks(schema: Schema) -> Check | None:
    """Python equivalents of the rules in a schema; None if it has none. Values of a wrong type are skipped."""
    match schema.get("type"):
        case "array":
            return _of_list(schema)
        case "object":
            return _of_object(schema)
    return None


def _of_list(schema: Schema) -> Check | None:
    own, each = _own(schema), checks(schema["items"])
    if not own and each is None:
        return None

    def check(value: Any, location: Location) -> Iterator[tuple[Location, str]]:
        if not isinstance(value, list):
            return
        yield from _violations(own, value, location)
        if each is not None:
            for index, item in enumerate(value):
                yield from each(item, (*location, index))

    return check


def _of_object(schema: Schema) -> Check | None:
    own = _own(schema)
    named = {name: below for name, child in schema.get("properties", {}).items() if (below := checks(child))}
    others = checks(schema.get("additionalProperties", {}))
    if not own and not named and others is None:
        return None

    def check(value: Any, location: Location) -> Iterator[tuple[Location, str]]:
        if not isinstance(value, dict):
            return
        yield from _violations(own, value, location)
        for name, item in value.items():
            below = named.get(name, others)
            if below is not None:
                yield from below(item, (*location, name))

    return check


_Own = list[Callable[[Any], Any]]


def _own(schema: Schema) -> _Own:
    rules = [rule_of(validation["rule"]).violations for validation in schema.get("x-kubernetes-validations", ())]
    return [_repeated, *rules] if schema.get("x-kubernetes-list-type") == "set" else rules


def _repeated(value: list[Any]) -> Iterator[tuple[Location, str]]:
    """The API server refuses a set with a repeated item. All sets are of strings."""
    first: dict[str, int] = {}
    for index, each in enumerate(value):
        if isinstance(each, str) and (before := first.setdefault(each, index)) != index:
            yield (index,), f"{shown(each)} is already item [{before}]: name it once"


def _violations(own: _Own, value: Any, location: Location) -> Iterator[tuple[Location, str]]:
    for violations in own:
        for below, message in violations(value):
            yield (*location, *below), message
