"""A field in a release's file: type, default, choices, bounds, rules. Descriptions are omitted, because they may change
freely.
"""

from collections.abc import Mapping
from typing import Any

from tools.generate.reference.fields import EMBEDDED, PRESERVE, SchemaField, fields, type_of

Fact = dict[str, Any]
"""One field: only what is not self-evident, so that a release's file stays readable."""

BOUNDS = (
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "maxProperties",
)
_KEPT = ("default", "enum", "const", "pattern", *BOUNDS)
_RENAMED = {
    "x-kubernetes-list-type": "listType",
    "x-kubernetes-list-map-keys": "listKeys",
    "x-kubernetes-map-type": "mapType",
}
#: Fields of Kubernetes, which are the same for every kind.
_COMMON = frozenset({"apiVersion", "kind", "metadata"})


def facts(schema: Mapping[str, Any]) -> dict[str, Fact]:
    """Every field of a schema by its path; the schema itself as "" if it has rules."""
    result = {"": {"rules": rules}} if (rules := _rules(schema)) else {}
    for each in fields(schema):
        if each.path not in _COMMON:
            result[each.path] = _fact(each)
    return result


def _fact(field: SchemaField) -> Fact:
    schema = field.schema
    fact: Fact = {"type": _type(schema)}
    if field.required:
        fact["required"] = True
    if field.nullable:
        fact["nullable"] = True
    # Kubernetes defines the format of quantities.
    kept = _KEPT if fact["type"] != "quantity" else ("default",)
    fact |= {key: schema[key] for key in kept if key in schema}
    fact |= {name: schema[key] for key, name in _RENAMED.items() if key in schema}
    if schema.get(PRESERVE) and EMBEDDED not in schema:
        fact["open"] = True
    if rules := _rules(schema):
        fact["rules"] = rules
    return fact


def _type(schema: Mapping[str, Any]) -> str:
    # Elements of a list or a map have their own path.
    if schema.get("type") == "array":
        return "list"
    if schema.get("type") == "object" and EMBEDDED not in schema:
        return "map" if isinstance(schema.get("additionalProperties"), Mapping) else "object"
    return type_of(schema)


def _rules(schema: Mapping[str, Any]) -> list[str]:
    return [str(each["rule"]) for each in schema.get("x-kubernetes-validations", ())]
