"""Partial objects that the API server converts while it prunes fields."""

from typing import Any

import pytest
from dynamo_shared.api.conversion import NotConvertible, convert, marked, unreported
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.resources import Resource
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.api.validation.junk import JUNK, broken

ALPHA, BETA = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
EMPTY = '{"for":"v1alpha1","version":1}'


def part(metadata: Any = None, **service: Any) -> dict[str, Any]:
    whole = {"apiVersion": ALPHA, "kind": "DynamoGraphDeployment", "spec": {"services": {"a": service}}}
    return whole if metadata is None else {**whole, "metadata": metadata}


@pytest.mark.parametrize("metadata", [None, {}, {"name": "g"}, {"annotations": {"a": "b"}}])
def test_a_part_gets_the_annotation(metadata: Any) -> None:
    obj = part(metadata)
    before = (metadata or {}).get("annotations", {})
    expected = {**(metadata or {}), "annotations": {**before, PRESERVED_FIELDS: EMPTY}}
    assert marked(obj, convert(obj, BETA))["metadata"] == expected


def test_an_empty_annotation_does_not_change_the_part() -> None:
    made = marked(part({"name": "g"}, replicas=1), convert(part({"name": "g"}, replicas=1), BETA))
    assert convert(made, ALPHA) == part({"name": "g"}, replicas=1)


def test_a_part_without_a_spec_gets_the_annotation() -> None:
    obj = {"apiVersion": ALPHA, "kind": "DynamoGraphDeployment", "metadata": {"uid": "u"}}
    assert marked(obj, convert(obj, BETA))["metadata"]["annotations"] == {PRESERVED_FIELDS: EMPTY}


@pytest.mark.parametrize("status", [{}, {"state": "initializing"}])
def test_a_v1alpha1_object_has_a_status_from_the_start(status: dict[str, Any]) -> None:
    """The API server adds defaults to it, and a client may write it back: it is not stored."""
    stored = convert(part({"uid": "u"}), BETA)
    shown = marked(stored, convert(stored, ALPHA))
    assert shown["status"] == {}
    assert convert(unreported({**shown, "status": status}), BETA) == stored
    reported = {**stored, "status": {"state": "pending"}}
    assert marked(reported, convert(reported, ALPHA))["status"] == {"state": "pending"}
    assert unreported(shown | {"status": {"state": "pending"}})["status"] == {"state": "pending"}


@pytest.mark.parametrize(
    "resource", [each.resource for each in DEFINITIONS if each.is_converted], ids=lambda each: each.kind
)
def test_the_status_from_the_start_is_valid(resource: Resource) -> None:
    """Kubernetes 1.30 refused to store component deployments in v1alpha1: `status.conditions: Required value`."""
    obj = {"apiVersion": BETA, "kind": resource.kind, "metadata": {"name": "a", "uid": "u"}, "spec": {}}
    shown = marked(obj, convert(obj, ALPHA))
    schema = schema_of(resource.at("v1alpha1"))["properties"]["status"]
    required = schema.get("required", ())
    assert [each for each in required if "default" not in schema["properties"][each]] == list(shown["status"])
    assert unreported(shown) == {name: value for name, value in shown.items() if name != "status"}


@pytest.mark.parametrize("obj", [part({"uid": "u"}), part({"name": "g"}, dynamoNamespace="n")], ids=["whole", "kept"])
def test_other_parts_are_converted_unchanged(obj: dict[str, Any]) -> None:
    converted = convert(obj, BETA)
    assert marked(obj, converted) is converted


@given(
    broken(), st.dictionaries(st.sampled_from(["apiVersion", "kind", "metadata"]), JUNK), st.sampled_from([ALPHA, BETA])
)
def test_junk_is_converted_or_rejected(obj: dict[str, Any], junk: dict[str, Any], desired: str) -> None:
    whole = {**obj, **junk}
    try:
        converted = marked(whole, convert(unreported(whole), desired))
    except NotConvertible:
        return
    assert (converted["apiVersion"], converted["kind"]) == (desired, whole["kind"])
