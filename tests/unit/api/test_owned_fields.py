"""The record of field ownership as the API server writes it, and as any user may forge it."""

import json
from typing import Any

import pytest
from dynamo_shared.api.owned_fields import managers_of, owned_fields, path_of


def recorded(*entries: Any) -> dict[str, Any]:
    return {"metadata": {"managedFields": list(entries)}}


def entry(manager: str, fields: Any, time: str = "1") -> dict[str, Any]:
    return {"manager": manager, "operation": "Apply", "apiVersion": "v1", "time": time, "fieldsV1": fields}


def item(name: str, *, escaped: bool = False) -> dict[str, Any]:
    key = json.dumps({"name": name}, separators=(",", ":"), ensure_ascii=escaped)
    return {"f:spec": {"f:components": {f"k:{key}": {".": {}, "f:name": {}, "f:replicas": {}}}}}


def test_managers_of_a_field_are_listed_with_the_latest_first() -> None:
    obj = recorded(
        entry("old", {"f:spec": {"f:replicas": {}}}, "1"),
        entry("new", {"f:spec": {"f:replicas": {}}}, "2"),
        entry("other", {"f:spec": {"f:paused": {}}}, "3"),
    )
    assert managers_of(obj, "spec", "replicas") == ["new", "old"]
    assert managers_of(obj, "spec") == ["other", "new", "old"]
    assert managers_of(obj, "spec", "replicas", "deeper") == []


@pytest.mark.parametrize("escaped", [True, False])
def test_a_list_item_is_recognized_in_every_notation_of_its_key(escaped: bool) -> None:
    obj = recorded(entry("m", item("größe", escaped=escaped)))
    assert managers_of(obj, "spec", "components", {"name": "größe"}, "replicas") == ["m"]
    assert managers_of(obj, "spec", "components", {"name": "other"}, "replicas") == []


def test_paths_of_owned_fields() -> None:
    (owned,) = owned_fields(recorded(entry("m", item("a"))))
    assert [path_of(leaf) for leaf in owned.leaves()] == [
        ["spec", "components", {"name": "a"}],
        ["spec", "components", {"name": "a"}, "name"],
        ["spec", "components", {"name": "a"}, "replicas"],
    ]


@pytest.mark.parametrize(
    "step", ["v:1", "i:0", "k:{}", "k:{", 'k:{"a":1}', 'k:{"a":"x","b":"y"}', "k:" + "[" * 9000, ""]
)
def test_a_field_without_a_name_has_no_path(step: str) -> None:
    assert path_of(("f:spec", step)) is None


@pytest.mark.parametrize(
    "obj", [None, {}, {"metadata": None}, recorded(None, 1, {}), recorded({"fieldsV1": "x", "time": {}, "manager": []})]
)
def test_junk_is_ignored(obj: Any) -> None:
    assert managers_of(obj, "spec") == []
    assert [leaf for each in owned_fields(obj) for leaf in each.leaves()] == []
