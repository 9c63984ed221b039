"""Reduces an OpenAPI v3 document to the types that the platform's kinds embed and their dependencies, without
descriptions.

The API server's documents have megabytes, mostly paths and descriptions; the result has 60 KB.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

_DROPPED = frozenset({"description", "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key"})
_REFERENCE = "#/components/schemas/"


class _Components(msgspec.Struct):
    schemas: dict[str, msgspec.Raw] = {}


class _Document(msgspec.Struct):
    """The part that is decoded; the decoder skips the rest."""

    components: _Components = msgspec.field(default_factory=_Components)


class BadDocument(ValueError):
    """A response is not an OpenAPI v3 document."""


def trimmed(content: bytes, types: Iterable[str]) -> dict[str, Any]:
    """The document with only the given types (if it has them) and their dependencies. Raises BadDocument."""
    try:
        raw = msgspec.json.decode(content, type=_Document).components.schemas
        schemas: dict[str, Any] = {}
        waiting = sorted(types, reverse=True)
        while waiting:
            name = waiting.pop()
            if name in raw and name not in schemas:
                schemas[name] = _without_prose(msgspec.json.decode(raw[name], type=dict[str, Any]), waiting)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadDocument(f"no OpenAPI v3 document: {error}") from error
    return {"components": {"schemas": schemas}}


def _without_prose(node: Any, references: list[str]) -> Any:
    """The schema without unused keys; names of types that it refers to are added to `references`."""
    if not isinstance(node, dict):
        return node
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in _DROPPED:
            continue
        if key == "properties" and isinstance(value, dict):
            # The keys are names of fields, which may include `description`.
            result[key] = {name: _without_prose(each, references) for name, each in value.items()}
        elif key == "$ref" and isinstance(value, str):
            references.append(value.removeprefix(_REFERENCE))
            result[key] = value
        elif isinstance(value, list):
            result[key] = [_without_prose(each, references) for each in value]
        else:
            result[key] = _without_prose(value, references)
    return result
