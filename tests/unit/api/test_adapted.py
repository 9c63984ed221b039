"""Whose number counts while a component has an adapter."""

from __future__ import annotations

from typing import Any

from dynamo_shared.api import adapted
from dynamo_shared.api.adapted import Difference
from hypothesis import given
from hypothesis import strategies as st

NAMES = ("One", "Two", "Three")


def graph(replicas: dict[str, int | None], adapting: tuple[str, ...] = NAMES) -> dict[str, Any]:
    return {
        "metadata": {"uid": "graph"},
        "spec": {
            "components": [
                {
                    "name": name,
                    **({} if count is None else {"replicas": count}),
                    **({"scalingAdapter": {}} if name in adapting else {}),
                }
                for name, count in replicas.items()
            ]
        },
    }


def adapter(component: str, replicas: int, owner: str = "graph") -> dict[str, Any]:
    return {
        "metadata": {"ownerReferences": [{"uid": owner, "controller": True}]},
        "spec": {"dgdRef": {"name": "graph", "componentName": component}, "replicas": replicas},
    }


def test_adapters_own_what_their_graph_gave_them():
    results = [adapter("One", 2), adapter("Two", 3, owner="another"), adapter("Three", 4), adapter("Gone", 5)]
    owners = adapted.owning(graph({"One": 1, "Two": 1, "Three": 1}, adapting=("One", "Two")), results)
    assert adapted.replicas_of(owners) == {"One": 2}
    owners["One"]["spec"]["replicas"] = 10_000_000
    assert adapted.replicas_of(owners) == {}


def test_differing_numbers_are_reported_with_their_path_and_a_missing_one_as_none():
    of = graph({"One": 1, "Two": None, "Three": 3})
    result = adapted.differences(of, {"One": 1, "Two": 2, "Three": 0})
    assert result == [Difference("Two", 1, None, 2), Difference("Three", 2, 3, 0)]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.none() | st.integers(0, 5)),
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5)),
)
def test_a_graph_with_its_adapters_numbers_differs_from_them_in_nothing(replicas, expected):
    before = graph(replicas)
    after = adapted.with_replicas(before, expected)
    assert adapted.differences(after, expected) == []
    assert (after is before) == (not adapted.differences(before, expected))
    assert before == graph(replicas), "what is given is not written into"
    untouched = [each for each in after["spec"]["components"] if each["name"] not in expected]
    assert all(each in before["spec"]["components"] for each in untouched)
