"""Changes: the fields that only one version has. They stay few, and the object survives the round trip."""

import time
from typing import Any

import pytest
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.conversion.changes import MAX_CHANGES, apply_changes, diff

MANY = {f"k{number}": number for number in range(MAX_CHANGES * 2)}


def test_if_there_are_too_many_changes_those_of_the_largest_object_are_combined() -> None:
    base = {"a": {"b": {name: str(value) for name, value in MANY.items()}, "c": {"d": 1, "e": 2}}}
    desired = {"a": {"b": MANY, "c": {"d": 1}}}
    changes = diff(base, desired)
    assert [change[0] for change in changes] == [["a", "b"], ["a", "c", "e"]]
    assert apply_changes(base, changes) == desired


@pytest.mark.parametrize("requests", [{"cpu": 4}, {"cpu": "4", "memory": 3}, MANY], ids=["number", "both", "many"])
def test_quantities_survive_as_their_author_wrote_them(requests: dict[str, Any]) -> None:
    config = {"profilerImage": "p", "config": {"sla": {"isl": 3}}, "resources": {"requests": requests}}
    request = {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeploymentRequest",
        "metadata": {"name": "q"},
        "spec": {"model": "m", "backend": "vllm", "profilingConfig": config},
    }
    assert convert(convert(request, "nvidia.com/v1beta1"), "nvidia.com/v1alpha1") == request


def test_many_changes_that_sort_a_long_list_take_little_time() -> None:
    """A tenant may write them: 90,000 names are a small text when compressed."""
    items = [{"name": f"V{number}"} for number in range(12_000)]
    order = [f"V{number}" for number in range(11_999, -1, -40)]
    began = time.process_time()
    result = apply_changes({"env": items}, [[["env"], "name", order]] * 300)
    assert time.process_time() - began < 5
    names = [each["name"] for each in result["env"]]
    assert names[: len(order)] == order
    assert sorted(names) == sorted(each["name"] for each in items)
