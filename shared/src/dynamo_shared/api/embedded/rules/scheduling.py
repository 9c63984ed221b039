"""Rules of affinity, topology spread and tolerations. Objects may have fields of any type."""

from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.embedded.rules import names
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.rules import Location, Violations
from dynamo_shared.api.untrusted.reading import items, mapping

_WITH_VALUES, _WITHOUT_VALUES, _WITH_A_NUMBER = ("In", "NotIn"), ("Exists", "DoesNotExist"), ("Gt", "Lt")
_SELECTORS_OF_PODS = ("labelSelector", "namespaceSelector")


def toleration(value: dict[str, Any]) -> Violations:
    """Rules between the fields of a toleration."""
    operator, given = value.get("operator") or "Equal", value.get("value")
    if operator == "Exists" and given:
        yield ("value",), "must be empty if the operator is Exists"
    if operator == "Equal" and isinstance(given, str) and (problem := names.wrong_label_value(given)):
        yield ("value",), problem
    if not value.get("key") and operator != "Exists":
        yield ("operator",), "must be Exists if there is no key"
    if isinstance(key := value.get("key"), str) and key and (problem := names.wrong_key(key)):
        yield ("key",), f"{shown(key)} {problem}"
    if value.get("tolerationSeconds") is not None and value.get("effect") != "NoExecute":
        yield ("effect",), "must be NoExecute if tolerationSeconds is set"


def node_requirement(value: dict[str, Any]) -> Violations:
    """In and NotIn have values, Exists and DoesNotExist have none, Gt and Lt have one number."""
    yield from _requirement(value)
    operator, values = value.get("operator"), value.get("values")
    if operator in _WITH_A_NUMBER and not _is_one(values):
        yield ("values",), f"must be one number, because operator is {operator}"


def node_term(value: dict[str, Any]) -> Violations:
    """A field selector of nodes has one value."""
    for index, each in enumerate(map(mapping, items(value.get("matchFields")))):
        operator, at = each.get("operator"), ("matchFields", index)
        if isinstance(operator, str) and operator and operator not in _WITH_VALUES:
            yield (*at, "operator"), f"must be In or NotIn for a field, not {shown(operator)}"
        elif operator and each.get("values") and not _is_one(each["values"]):
            yield (*at, "values"), "must be one value, because a field has one value; add a term for each other value"


def affinity_term(value: dict[str, Any]) -> Violations:
    """The label selectors of an affinity term are valid."""
    for field in _SELECTORS_OF_PODS:
        yield from _of_selector(value, field)


def spread(value: dict[str, Any]) -> Violations:
    """Rules between the fields of a topology spread constraint."""
    yield from _of_selector(value, "labelSelector")
    if value.get("minDomains") is not None and value.get("whenUnsatisfiable") == "ScheduleAnyway":
        yield (
            ("minDomains",),
            "only allowed if whenUnsatisfiable is DoNotSchedule: change whenUnsatisfiable, or leave this out",
        )
    if value.get("matchLabelKeys") and value.get("labelSelector") is None:
        yield ("matchLabelKeys",), "needs a labelSelector, which it extends: write one, or leave this out"
    for index, key in enumerate(items(value.get("matchLabelKeys"))):
        if isinstance(key, str) and (problem := names.wrong_key(key)):
            yield ("matchLabelKeys", index), f"{shown(key)} {problem}"


def selector(value: dict[str, Any]) -> Violations:
    """The keys, values and operators of a label selector are valid."""
    yield from names.wrong_labels(value, "matchLabels")
    for index, each in enumerate(items(value.get("matchExpressions"))):
        if isinstance(each, dict):
            for at, problem in _of_expression(each):
                yield ("matchExpressions", index, *at), problem


def _of_expression(value: dict[str, Any]) -> Violations:
    operator = value.get("operator")
    if isinstance(operator, str) and operator and operator not in (*_WITH_VALUES, *_WITHOUT_VALUES):
        yield ("operator",), f"{shown(operator)} is not allowed; one of In, NotIn, Exists, DoesNotExist"
    yield from _requirement(value)
    for index, each in enumerate(items(value.get("values"))):
        if isinstance(each, str) and (problem := names.wrong_label_value(each)):
            yield ("values", index), problem


def _requirement(value: dict[str, Any]) -> Violations:
    operator, values, key = value.get("operator"), value.get("values"), value.get("key")
    if operator in _WITH_VALUES and not values:
        yield ("values",), f"required, because operator is {operator}"
    if operator in _WITHOUT_VALUES and values:
        yield ("values",), f"must be empty if operator is {operator}"
    if isinstance(key, str) and key and (problem := names.wrong_key(key)):
        yield ("key",), f"{shown(key)} {problem}"


def _of_selector(value: dict[str, Any], field: str) -> Iterator[tuple[Location, str]]:
    for at, problem in selector(mapping(value.get(field))):
        yield (field, *at), problem


def _is_one(values: Any) -> bool:
    return isinstance(values, list) and len(values) == 1
