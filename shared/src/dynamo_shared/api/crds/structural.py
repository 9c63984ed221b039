"""Converts a pydantic model to a structural schema, the form of OpenAPI v3 that CustomResourceDefinitions require.

References are inlined, and a field that may be None is optional (the API server prunes nulls). Keywords of pydantic
that a structural schema cannot have are dropped, or refused if the meaning would change.
"""

from typing import Any

from pydantic import BaseModel

from dynamo_shared.api.model import EMBEDDED

Schema = dict[str, Any]

_KEPT = (
    "description",
    "type",
    "format",
    "default",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "maxProperties",
    "required",
)
_DROPPED = frozenset({"title", "$defs"})
#: Bounds that a format implies.
_BOUNDS = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (32, 64)}
_INT_OR_STRING = "x-kubernetes-int-or-string"


def structural_schema(model: type[BaseModel]) -> Schema:
    """Schema of a model. ValueError for a construct that the API server would refuse, with the field's path."""
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(raw, raw.get("$defs", {}), model.__name__)


def _convert(node: Schema, definitions: dict[str, Schema], path: str) -> Schema:
    node = _resolve(node, definitions, path)
    result: Schema = {key: node[key] for key in _KEPT if key in node and not _is_implied(key, node)}
    for key, value in node.items():
        if key in _KEPT or key in _DROPPED:
            continue
        if key.startswith("x-kubernetes-") or key == EMBEDDED:
            result[key] = value
        elif key == "properties":
            # The API server drops an empty value, and every `kubectl apply` would then detect a change.
            if value:
                result[key] = {name: _convert(each, definitions, f"{path}.{name}") for name, each in value.items()}
        elif key == "items":
            result[key] = _convert(value, definitions, f"{path}[]")
        elif key == "additionalProperties":
            if isinstance(value, dict):
                result[key] = _convert(value, definitions, f"{path}{{}}")
            elif value:
                raise ValueError(f"{path}: a map of anything has no structural schema; preserve unknown fields instead")
        elif key == "anyOf" and node.get(_INT_OR_STRING):
            result[key] = value
        elif key == "const":
            result["enum"] = [value]
        else:
            raise ValueError(f"{path}: {key} has no place in a structural schema")
    return result


def _is_implied(key: str, node: Schema) -> bool:
    if key in ("minimum", "maximum"):
        return node[key] in _BOUNDS.get(node.get("format", ""), ())
    return key == "default" and node[key] is None


def _resolve(node: Schema, definitions: dict[str, Schema], path: str) -> Schema:
    """Inline a reference and remove null from a choice; keys next to them, such as the description, take precedence."""
    while "$ref" in node or ("anyOf" in node and not node.get(_INT_OR_STRING)):
        siblings = dict(node)
        if "$ref" in siblings:
            target = definitions[siblings.pop("$ref").rsplit("/", 1)[-1]]
        else:
            choices = [choice for choice in siblings.pop("anyOf") if choice.get("type") != "null"]
            if len(choices) != 1:
                raise ValueError(f"{path}: a choice between types has no structural schema")
            target = choices[0]
        node = {**target, **siblings}
    return node
