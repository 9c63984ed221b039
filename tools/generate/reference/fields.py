"""The fields of a schema, in order, with their paths: `spec.components[].name`, `spec.services{}.replicas`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]

EMBEDDED = "x-dynamo-embedded"
PRESERVE = "x-kubernetes-preserve-unknown-fields"


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One field: `schema` has its references resolved; `nullable`: null is also allowed."""

    path: str
    schema: Schema
    required: bool
    nullable: bool = False

    @property
    def is_element(self) -> bool:
        """Whether this is an element of a list or a map, which has no name of its own."""
        return self.path.endswith(("[]", "{}"))


def fields(schema: Schema) -> Iterator[SchemaField]:
    """Every field of a JSON Schema or a structural one, parents first, in the order of the schema."""
    yield from _below(schema, "", schema.get("$defs", {}))


def _below(node: Schema, path: str, definitions: Schema) -> Iterator[SchemaField]:
    required = node.get("required", ())
    for name, child in node.get("properties", {}).items():
        yield from _field(child, f"{path}.{name}" if path else name, name in required, definitions)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(node.get(key), Mapping):
            yield from _field(node[key], path + mark, False, definitions)


def _field(node: Schema, path: str, required: bool, definitions: Schema) -> Iterator[SchemaField]:
    resolved, nullable = _resolved(node, definitions)
    yield SchemaField(path, resolved, required, nullable)
    # Fields below an older name also exist below the current name.
    if not resolved.get("deprecated"):
        yield from _below(resolved, path, definitions)


def _resolved(node: Schema, definitions: Schema) -> tuple[Schema, bool]:
    """A node and its elements, with references resolved and null removed from the choices; keywords next to a reference
    take precedence.
    """
    node, nullable = _direct(node, definitions)
    held = {
        key: _direct(node[key], definitions)[0]
        for key in ("items", "additionalProperties")
        if isinstance(node.get(key), Mapping)
    }
    return ({**node, **held} if held else node), nullable


def _direct(node: Schema, definitions: Schema) -> tuple[Schema, bool]:
    nullable = False
    while True:
        choices = [each for each in node.get("anyOf", ()) if each.get("type") != "null"]
        if "$ref" in node:
            target: Any = {"$defs": definitions}
            for step in str(node["$ref"]).removeprefix("#/").split("/"):
                target = target.get(step, {})
            node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
        elif len(choices) == 1:
            nullable = True
            node = {**choices[0], **{key: value for key, value in node.items() if key != "anyOf"}}
        elif "null" in (types := node.get("type", ())) and isinstance(types, list):
            nullable = True
            rest = [each for each in types if each != "null"]
            node = {**node, "type": rest[0] if len(rest) == 1 else rest}
        else:
            return node, nullable


def type_of(schema: Schema) -> str:
    """Type of a field for readers: `string`, `integer (int32)`, `list of objects`, `map of string`,
    `PodTemplateSpec`.
    """
    if EMBEDDED in schema:
        return kubernetes_type(schema)
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity"
    match schema.get("type"):
        case "array":
            return f"list of {_plural(schema.get('items', {}))}"
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            return f"map of {_plural(schema['additionalProperties'])}"
        case "object" if "properties" not in schema and schema.get(PRESERVE):
            return "any object"
        case list(kinds):
            return " or ".join(kinds)
        case None if "anyOf" in schema:
            return " or ".join(type_of(each) for each in schema["anyOf"])
        case None:
            return "any value"
        case kind:
            return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def kubernetes_type(schema: Schema) -> str:
    """The Kubernetes type that is embedded in a field, with its group and version: `core/v1 PodTemplateSpec`."""
    _, _, _, group, version, name = schema[EMBEDDED]["type"].split(".")
    return f"{group}/{version} {name}"


def _plural(schema: Schema) -> str:
    kind = type_of(schema)
    return (
        f"{kind}s" if kind in ("object", "string", "integer", "number", "boolean", "any object", "any value") else kind
    )


def limits_of(schema: Schema) -> list[str]:
    """Limits of a field's value, in words: choices, bounds, lengths, pattern, list keys."""
    limits = []
    if "enum" in schema:
        limits.append("one of " + ", ".join(f"`{value}`" for value in schema["enum"]))
    if "const" in schema:
        limits.append(f"`{schema['const']}`")
    for key, text in _BOUNDS.items():
        if key in schema:
            limits.append(text.format(schema[key]))
    if "pattern" in schema and not schema.get("x-kubernetes-int-or-string"):
        limits.append(f"matches `{schema['pattern']}`")
    if keys := schema.get("x-kubernetes-list-map-keys"):
        limits.append(f"unique by {', '.join(keys)}")
    if schema.get("x-kubernetes-list-type") == "set":
        limits.append("unique items")
    return limits


_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} keys",
}
