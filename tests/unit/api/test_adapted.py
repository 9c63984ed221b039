"""Whose replicas count if a component has an adapter."""

from typing import Any

import pytest
from dynamo_shared.api import adapted
from dynamo_shared.api.adapted import Difference
from hypothesis import given
from hypothesis import strategies as st

NAMES = ("One", "Two", "Three")


def graph(replicas: dict[str, int | None], adapting: tuple[str, ...] = NAMES) -> dict[str, Any]:
    def component(name: str, count: int | None) -> dict[str, Any]:
        adapted: dict[str, Any] = {"scalingAdapter": {}} if name in adapting else {}
        return {"name": name, **({} if count is None else {"replicas": count}), **adapted}

    return {"metadata": {"uid": "graph"}, "spec": {"components": [component(*each) for each in replicas.items()]}}


def adapter(component: str, replicas: int, owner: str = "graph") -> dict[str, Any]:
    return {
        "metadata": {"ownerReferences": [{"uid": owner, "controller": True}]},
        "spec": {"dgdRef": {"name": "graph", "componentName": component}, "replicas": replicas},
    }


def test_adapters_own_the_replicas_that_their_graph_gave_them():
    empty = {"metadata": adapter("One", 9)["metadata"]}
    results = [adapter("One", 2), adapter("Two", 3, owner="another"), adapter("Three", 4), adapter("Gone", 5), empty]
    of = graph({"One": 1, "Two": 1, "Three": 1}, adapting=("One", "Two"))
    owners = adapted.owning(of, results)
    assert adapted.replicas_of(of, owners) == {"One": 2}
    owners["One"]["spec"]["replicas"] = 10_000_000
    assert adapted.replicas_of(of, owners) == {}


@pytest.mark.parametrize(
    ("kind", "taken"), [("PodClique", False), ("PodCliqueScalingGroup", False), ("Deployment", True)]
)
def test_on_grove_fewer_than_the_minimum_are_rejected_and_0_is_accepted(kind: str, *, taken: bool):
    of = graph({"One": 4, "Two": 4})
    of["spec"]["components"][0]["minAvailable"] = 3
    of["status"] = {"components": {"One": {"componentKind": kind}}}
    owners = adapted.owning(of, [adapter("One", 2), adapter("Two", 1)])
    assert adapted.replicas_of(of, owners) == ({"One": 2, "Two": 1} if taken else {"Two": 1})
    reason = "2 replicas are fewer than the 3 of minAvailable, which Grove keeps together: write 0, or 3 or more"
    assert adapted.refusals(of, owners) == ({} if taken else {"One": reason})
    owners["One"]["spec"]["replicas"] = 0
    assert adapted.replicas_of(of, owners) == {"One": 0, "Two": 1}


def test_a_grove_override_may_also_set_the_minimum():
    of = graph({"One": 4, "Two": 4})
    for each, value in zip(of["spec"]["components"], ({"spec": {"minAvailable": 3}}, {"minAvailable": 2}), strict=True):
        each["providerOverride"] = {"apiVersion": "grove.io/v1alpha1", "value": value}
    of["status"] = {"components": {name: {"componentKind": "PodClique"} for name in ("One", "Two")}}
    assert adapted.least_replicas(of) == {"One": 3, "Two": 2}


def test_different_numbers_are_reported_with_their_path_and_a_missing_one_as_none():
    of = graph({"One": 1, "Two": None, "Three": 3})
    result = adapted.differences(of, {"One": 1, "Two": 2, "Three": 0})
    assert result == [Difference("Two", 1, None, 2), Difference("Three", 2, 3, 0)]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.none() | st.integers(0, 5)),
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5)),
)
def test_a_graph_with_the_numbers_of_its_adapters_has_no_difference(replicas, expected):
    before = graph(replicas)
    after = adapted.with_replicas(before, expected)
    assert adapted.differences(after, expected) == []
    assert (after is before) == (not adapted.differences(before, expected))
    assert before == graph(replicas), "what is given is not written into"
    untouched = [each for each in after["spec"]["components"] if each["name"] not in expected]
    assert all(each in before["spec"]["components"] for each in untouched)
