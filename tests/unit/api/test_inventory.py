"""The CRDs against the field inventory of the reference: every row of it, and nothing beyond it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from dynamo_shared.api import resources
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.resources import Resource

INVENTORY = Path(__file__).resolve().parents[4] / "shared" / "reference" / "crds"
KINDS = [resources.DYNAMO_GRAPH_DEPLOYMENTS, resources.DYNAMO_COMPONENT_DEPLOYMENTS]

pytestmark = pytest.mark.skipif(
    not INVENTORY.is_dir(), reason="the field inventory of the reference (../shared/reference/crds) is not here"
)

# What the inventory names without unfolding it. Their content is checked in test_crds.
EMBEDDED: dict[str, dict[str, Any]] = {
    "core/v1 PodTemplateSpec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "[]core/v1 EnvVar": {"type": "array"},
    "[]meta/v1 Condition": {"type": "array"},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
}
WORDS = {
    "minLength": "minLength",
    "maxLength": "maxLength",
    "minimum": "minimum",
    "maximum": "maximum",
    "maxItems": "maxItems",
    "pattern": "pattern",
    "default": "default",
    "format": "format",
    "list-type": "x-kubernetes-list-type",
    "list-map-keys": "x-kubernetes-list-map-keys",
    "map-type": "x-kubernetes-map-type",
    "preserve-unknown-fields": "x-kubernetes-preserve-unknown-fields",
    "int-or-string": "x-kubernetes-int-or-string",
    "type": "type",
}


class Row(NamedTuple):
    path: str
    type: str
    required: bool
    constraints: dict[str, Any]
    rules: list[str]


def rows_of(resource: Resource) -> list[Row]:
    text = (INVENTORY / f"{resource.plural}.md").read_text()
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    table = next(part for part in section if part.startswith(f"{resource.version} "))
    rows = []
    for line in table.splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 4 or cells[0] in ("field", "---"):
            continue
        constraints, rules = {}, []
        for item in filter(None, re.split(r"; (?=[A-Za-z-]+=|cel: )", cells[3])):
            if item.startswith("cel: "):
                rules.append(item.removeprefix("cel: "))
            else:
                key, _, value = item.partition("=")
                constraints[key] = json.loads(value)
        rows.append(Row(cells[0], cells[1], cells[2] == "yes", constraints, rules))
    return rows


def steps(path: str) -> list[str]:
    return re.findall(r"[A-Za-z]+|\[\]|\{\}", path)


def node_at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    for step in steps(path):
        if step == "[]":
            schema = schema["items"]
        elif step == "{}":
            schema = schema["additionalProperties"]
        else:
            schema = schema["properties"][step]
    return schema


def parent_requires(schema: dict[str, Any], path: str) -> bool:
    parent, _, name = path.rpartition(".")
    return name in node_at(schema, parent).get("required", [])


ROWS = (
    [pytest.param(resource, row, id=f"{resource.kind}-{row.path}") for resource in KINDS for row in rows_of(resource)]
    if INVENTORY.is_dir()
    else []
)


@pytest.mark.parametrize(("resource", "row"), ROWS)
def test_row(resource: Resource, row: Row) -> None:
    schema = schema_of(resource)
    node = node_at(schema, row.path)
    if row.type in EMBEDDED:
        assert node.items() >= EMBEDDED[row.type].items()
    elif row.type == "int-or-string":
        assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}]
        assert "type" not in node
    elif row.type != "(element)":
        assert node["type"] == row.type
    if row.type != "(element)":
        assert parent_requires(schema, row.path) == row.required
    for key, value in row.constraints.items():
        if key in ("enum", "required"):
            assert sorted(node[key]) == sorted(value), key
        else:
            assert node[WORDS[key]] == value, key
    assert [rule["rule"] for rule in node.get("x-kubernetes-validations", [])] == row.rules
    stated = {WORDS.get(key, key) for key in row.constraints}
    bounds = set(WORDS.values()) - {"type"} | {"enum"}
    assert set(node) & bounds <= stated | set(EMBEDDED.get(row.type, {})), "bounds that the reference has not"


def fields(schema: dict[str, Any], path: str, embedded: set[str]) -> list[str]:
    found = []
    for name, child in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        found.append(here)
        if here not in embedded:
            found += fields(child, here, embedded)
    if isinstance(schema.get("items"), dict):
        found += fields(schema["items"], f"{path}[]", embedded)
    if isinstance(schema.get("additionalProperties"), dict):
        found += fields(schema["additionalProperties"], f"{path}{{}}", embedded)
    return found


@pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)
def test_there_is_no_field_beyond_the_inventory(resource: Resource) -> None:
    rows = rows_of(resource)
    assert len(rows) > 60
    embedded = {row.path for row in rows if row.type in EMBEDDED}
    ours = set(fields(schema_of(resource), "", embedded)) - {"apiVersion", "kind", "metadata"}
    assert ours == {row.path for row in rows if not row.path.endswith(("[]", "{}"))}
