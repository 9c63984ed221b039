"""The fields that pruning removes from an object, like the API server does."""

import copy
from typing import Any

import pytest
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.crds.kinds import DEFINITIONS, LEGACY
from dynamo_shared.api.crds.pruning import pruned
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, Resource
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples

from .conversion.strategies import junk, manifests

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"size": {"type": "integer"}}}},
        "by": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}},
        "free": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"own": {"type": "object"}},
        },
        "mark": {"type": "object"},
    },
}


def test_unknown_fields_are_removed_in_place() -> None:
    parts = [{"size": 1, "colour": "red"}, {"colour": {"a": 1}}]
    by = {"k": {"x": "y", "z": []}}
    free = {"any": {"thing": 1}, "own": {"a": 1}}
    value = {"name": "a", "other": 1, "null": None, "parts": parts, "by": by, "free": free, "mark": {"enabled": True}}
    before = copy.deepcopy(value)
    kept, lost = pruned(value, SCHEMA)
    assert lost == [
        ("other",),
        ("parts", 0, "colour"),
        ("parts", 1, "colour"),
        ("by", "k", "z"),
        ("free", "own", "a"),
        ("mark", "enabled"),
    ]
    assert kept == {
        "name": "a",
        "parts": [{"size": 1}, {}],
        "by": {"k": {"x": "y"}},
        "free": {"any": {"thing": 1}, "own": {}},
        "mark": {},
    }
    assert value == before


@pytest.mark.parametrize("value", [None, 7, "text", [], {"parts": 7, "by": [1], "name": {"a": 1}}])
def test_values_of_another_type_are_left_alone(value: Any) -> None:
    kept, lost = pruned(value, SCHEMA)
    assert (kept, lost) == (value, [])


RESOURCES = [version.resource for each in DEFINITIONS if each not in LEGACY for version in each.versions]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: f"{each.kind}-{each.version}")
@given(st.data())
@examples(8)
def test_a_described_object_loses_nothing(resource: Resource, data: st.DataObject) -> None:
    obj = {name: each for name, each in data.draw(manifests(resource)).items() if name in ("spec", "status")}
    kept, lost = pruned(obj, schema_of(resource))
    assert (kept, lost) == (obj, [])


@given(junk)
@examples(50)
def test_any_object_is_pruned_in_one_pass(value: Any) -> None:
    schema = schema_of(DYNAMO_GRAPH_DEPLOYMENTS)
    kept, _ = pruned({"spec": value}, schema)
    again, lost = pruned(kept, schema)
    assert (again, lost) == (kept, [])
