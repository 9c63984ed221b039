"""JSON Schemas of contracts and settings, draft 2020-12: pydantic's schemas, without keywords for only pydantic and
Kubernetes.
"""

import json
from typing import Any

from dynamo_shared.api.contracts import Contract
from dynamo_shared.api.contracts.base import OLDER_NAME_OF
from pydantic import BaseModel

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
BASE = "https://schemas.dynamo.nvidia.com/platform/v1/contracts"

# If a type converts before it checks, pydantic emits its bounds with their Python names.
_KEYWORDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def file_name(contract: Contract) -> str:
    """Name of the file of a contract's schema."""
    return f"{contract.name}.json"


def document(contract: Contract) -> Schema:
    """The whole JSON Schema document of a contract."""
    head = {
        "$schema": DIALECT,
        "$id": f"{BASE}/{file_name(contract)}",
        "title": contract.name,
        "description": f"{contract.description} {contract.place}",
    }
    body = json_schema(contract.model)
    body.pop("description", None)
    return {**head, **body, "examples": [dict(each) for each in contract.examples]}


def json_schema(model: type[BaseModel]) -> Schema:
    """Schema of a type, with the definitions that it refers to."""
    schema = model.model_json_schema(by_alias=True, mode="validation", ref_template="#/$defs/{model}")
    definitions: Schema = schema.pop("$defs", {})
    result: Schema = _clean(schema, model.__name__)
    if used := _referenced(result, definitions):
        result["$defs"] = {name: _clean(definitions[name], model.__name__) for name in sorted(used)}
    return result


def _clean(node: Any, root: str) -> Any:
    if isinstance(node, list):
        return [_clean(each, root) for each in node]
    if not isinstance(node, dict):
        return node
    if OLDER_NAME_OF in node:
        type_, name = node[OLDER_NAME_OF]
        place = "#" if type_ == root else f"#/$defs/{type_}"
        return {"$ref": f"{place}/properties/{name}", "deprecated": True}
    cleaned = {}
    for key, value in node.items():
        if key == "properties":
            cleaned[key] = {name: _clean(each, root) for name, each in value.items()}
        elif key == "title" or key.startswith("x-") or (key == "default" and value is None):
            continue
        else:
            cleaned[_KEYWORDS.get(key, key)] = value if key in ("default", "examples", "enum") else _clean(value, root)
    return _without_choice(cleaned)


def _without_choice(node: Schema) -> Schema:
    """A simple type or null as one list of types, which is easier to read."""
    choices = node.get("anyOf", ())
    if len(choices) != 2 or choices[1] != {"type": "null"} or not isinstance(choices[0].get("type"), str):
        return node
    simple = choices[0]
    if "enum" in simple or "const" in simple:
        return node
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**rest, **simple, "type": [simple["type"], "null"]}


def _referenced(node: Any, definitions: Schema) -> set[str]:
    """Names of the definitions that a schema needs, directly or indirectly."""
    referred: set[str] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            name = str(each.get("$ref", "")).removeprefix("#/$defs/").partition("/")[0]
            if name in definitions and name not in referred:
                referred.add(name)
                waiting.append(definitions[name])
            waiting += each.values()
    return referred


def text(schema: Schema) -> str:
    """The content of a schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
