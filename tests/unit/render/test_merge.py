import time
from typing import Any

import pytest
from dynamo_pod_builder.render.pod.env import merge_env
from dynamo_pod_builder.render.pod.merge import merge, merge_container
from hypothesis import given
from hypothesis import strategies as st

BASE = {"a": 1, "list": [1, 2], "map": {"x": "1", "y": "2"}}


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ({}, BASE),
        ({"a": 2}, {**BASE, "a": 2}),
        ({"a": 0}, BASE),
        ({"b": 0}, {**BASE, "b": 0}),
        ({"b": {}}, {**BASE, "b": {}}),
        ({"list": [3]}, {**BASE, "list": [3]}),
        ({"list": []}, BASE),
        ({"map": {"y": "3", "z": "4"}}, {**BASE, "map": {"x": "1", "y": "3", "z": "4"}}),
        ({"map": {}}, BASE),
    ],
)
def test_merge(override: dict[str, Any], expected: dict[str, Any]) -> None:
    assert merge(BASE, override) == expected


HTTP = {"httpGet": {"path": "/live", "port": "system"}, "periodSeconds": 5, "failureThreshold": 1}


@pytest.mark.parametrize(
    ("given_probe", "expected"),
    [
        (None, HTTP),
        ({"exec": {"command": ["true"]}}, {"exec": {"command": ["true"]}}),
        ({"httpGet": {"path": "/x", "port": 1}}, {"httpGet": {"path": "/x", "port": 1}}),
        ({"initialDelaySeconds": 180}, {**HTTP, "initialDelaySeconds": 180}),
        ({"periodSeconds": 9}, {**HTTP, "periodSeconds": 9}),
    ],
)
def test_probes(given_probe: dict[str, Any] | None, expected: dict[str, Any]) -> None:
    user = {"livenessProbe": given_probe} if given_probe else {}
    assert merge_container({"name": "main", "livenessProbe": HTTP}, user)["livenessProbe"] == expected


def test_container_keeps_its_name_and_deep_merges_resources() -> None:
    base = {"name": "main", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    merged = merge_container(base, {"name": "other", "resources": {"limits": {"cpu": "2"}}})
    assert merged == {"name": "main", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)
objects = st.dictionaries(st.text(max_size=2), json_values, max_size=4)


@given(objects, objects)
def test_merge_is_idempotent_and_does_not_change_its_inputs(base: dict[str, Any], override: dict[str, Any]) -> None:
    before = repr((base, override))
    once = merge(base, override)
    assert merge(once, override) == once
    assert repr((base, override)) == before


names = st.sampled_from("ABCDE")
layers = st.lists(
    st.lists(st.builds(lambda n, v: {"name": n, "value": v}, names, st.text(max_size=3)), max_size=6), max_size=3
)


@given(layers)
def test_env_is_a_sorted_union_in_which_the_last_wins(given_layers: list[list[dict[str, str]]]) -> None:
    merged = merge_env(*given_layers)
    results = [each["name"] for each in merged]
    assert results == sorted(set(results))
    last = {each["name"]: each["value"] for layer in given_layers for each in layer}
    assert {each["name"]: each["value"] for each in merged} == last


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ({"ADDRESS": "$(HOST):80", "HOST": "h"}, ["HOST", "ADDRESS"]),
        ({"A": "$(B)", "B": "$(C) $(D)", "C": "c", "D": "d"}, ["C", "D", "B", "A"]),
        ({"A": "$(Z)", "Z": "z", "B": "b"}, ["Z", "A", "B"]),
        ({"A": "$(B)", "B": "$(A)"}, ["B", "A"]),
        ({"A": "$$(B)", "B": "b"}, ["A", "B"]),
        ({"A": "$$$(B)", "B": "b"}, ["B", "A"]),
        ({"A": "$(A) $(GONE) $(", "B": "b"}, ["A", "B"]),
    ],
)
def test_a_variable_follows_those_that_it_references(values: dict[str, str], order: list[str]) -> None:
    """Kubernetes expands only earlier variables."""
    given_ = [{"name": name, "value": value} for name, value in values.items()]
    assert [each["name"] for each in merge_env(given_)] == order
    assert [each["name"] for each in merge_env(reversed(given_))] == order


references = st.builds(lambda n, v: {"name": n, "value": v}, names, st.sampled_from(["$(A)", "$(C)$(E)", "$(B)", "x"]))


@given(st.lists(references, max_size=6))
def test_no_variable_is_lost_or_duplicated_whatever_it_references(given_layer: list[dict[str, str]]) -> None:
    merged = merge_env(given_layer)
    assert sorted(each["name"] for each in merged) == sorted({each["name"] for each in given_layer})
    assert merge_env(merged) == merged


def test_a_megabyte_of_variables_is_merged_quickly() -> None:
    began = time.process_time()
    assert len(merge_env([{"name": f"V{number}"} for number in range(50_000)])) == 50_000
    assert time.process_time() - began < 5
