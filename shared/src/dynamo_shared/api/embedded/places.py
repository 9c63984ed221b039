"""Finds the embedded types of Kubernetes in the schema of a kind, and builds functions that visit only these in an object."""

from collections.abc import Iterator, Mapping
from typing import Any

from dynamo_shared.api.embedded.compile import Types
from dynamo_shared.api.embedded.findings import Check, EmbeddedProblem, FindingsLimit, Problems, under
from dynamo_shared.api.model import EMBEDDED

Schema = Mapping[str, Any]


def embedded_types(schema: Schema) -> Iterator[str]:
    """Names of all types that a structural schema embeds, with repetitions."""
    if EMBEDDED in schema:
        yield schema[EMBEDDED]["type"]
    for child in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(child, Mapping):
            yield from embedded_types(child)


def walker(schema: Schema, types: Types) -> Check | None:
    """The check of all embedded types below a node of a structural schema; None if there are none that `types` has.

    Values of wrong types above embedded types are ignored: the kind's schema reports them.
    """
    fields = {name: below for name, child in schema.get("properties", {}).items() if (below := walker(child, types))}
    checks: list[Check] = []
    if EMBEDDED in schema:
        mark = schema[EMBEDDED]
        # `spec.containers[].name` and `spec.containers.name` are equivalent.
        optional = frozenset(path.replace("[]", "").replace("{}", "") for path in mark.get("optional", ()))
        embedded = types.check(mark["type"], optional, frozenset(schema.get("properties", ())))
        if embedded is not None:
            checks.append(embedded)
    if fields:
        checks.append(_fields(fields))
    if isinstance(items := schema.get("items"), Mapping) and (below := walker(items, types)):
        checks.append(_each(below, list))
    if isinstance(others := schema.get("additionalProperties"), Mapping) and (below := walker(others, types)):
        checks.append(_each(below, dict))
    return _all(checks)


def _all(checks: list[Check]) -> Check | None:
    if len(checks) < 2:
        return checks[0] if checks else None

    def check(value: Any, budget: FindingsLimit) -> Problems:
        return [problem for each in checks for problem in each(value, budget) or ()]

    return check


def _fields(fields: dict[str, Check]) -> Check:
    def check(value: Any, budget: FindingsLimit) -> Problems:
        if not isinstance(value, dict):
            return None
        collected: list[EmbeddedProblem] = []
        for name, inner in fields.items():
            item = value.get(name)
            if item is not None and budget.left > 0 and (problems := inner(item, budget)):
                collected += under(name, problems)
        return collected

    return check


def _each(inner: Check, kind: type[list[Any] | dict[str, Any]]) -> Check:
    """The check of each item of a list, or of each value of an object."""

    def check(value: Any, budget: FindingsLimit) -> Problems:
        collected: list[EmbeddedProblem] = []
        if not isinstance(value, kind):
            return collected
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            if item is not None and budget.left > 0 and (problems := inner(item, budget)):
                collected += under(step, problems)
        return collected

    return check
