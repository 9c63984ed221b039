"""Moving between Deployments and Grove: what goes when, and what changes hands."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_pod_builder import children, render
from dynamo_pod_builder.reconcilers.switching import graph_uid, inherited, is_over, outgoing, uids
from dynamo_pod_builder.status.component import Failure
from dynamo_pod_builder.status.graph import Generation
from dynamo_shared.api import resources
from dynamo_shared.bus.cache import ObjectCache

CONFIG = render.RenderConfig()


def owned(kind: str, name: str, by: str, api_version: str = "v1", of: str = "DynamoGraphDeployment") -> dict[str, Any]:
    owner = {"apiVersion": "nvidia.com/v1beta1", "kind": of, "name": by, "uid": f"uid-of-{by}", "controller": True}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-of-{kind}-{name}",
            "resourceVersion": "1",
            "ownerReferences": [owner],
        },
    }


def component(name: str, type_: str) -> dict[str, Any]:
    found = owned("DynamoComponentDeployment", f"g-{name.lower()}", "g", "nvidia.com/v1beta1")
    containers = [{"name": "main", "image": "i"}]
    found["spec"] = {"name": name, "type": type_, "podTemplate": {"spec": {"containers": containers}}}
    return found


def cache_of(*objects: dict[str, Any]) -> ObjectCache:
    cache = ObjectCache()
    children.index(cache)
    for obj in objects:
        cache.put(resources.of(obj), obj)
    return cache


GRAPH = {"metadata": {"name": "g", "namespace": "ns", "uid": "uid-of-g"}}
SET = owned("PodCliqueSet", "g", "g", "grove.io/v1alpha1")
FRONTEND = component("Frontend", "frontend")


def test_the_other_way_is_components_on_grove_and_sets_without_it():
    cache = cache_of(SET, FRONTEND, owned("PodCliqueSet", "h", "h", "grove.io/v1alpha1"))
    assert outgoing(cache, GRAPH, None) == [SET]
    assert outgoing(cache, GRAPH, SET) == [FRONTEND]
    renamed = {**SET, "metadata": {**SET["metadata"], "name": "g-cafe"}}
    assert outgoing(cache, GRAPH, renamed) == [FRONTEND, SET], "a set of another name, too"
    assert uids([SET, FRONTEND]) == {SET["metadata"]["uid"], FRONTEND["metadata"]["uid"]}


def workload(ready: int) -> dict[str, Any]:
    counts = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": ready}
    return {
        "kind": "PodClique",
        "metadata": {"name": "c", "generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, **counts},
    }


@pytest.mark.parametrize(
    ("parts", "over"),
    [
        ([Generation("a", workload(1))], True),
        ([Generation("a", workload(0))], False),
        ([Generation("a", None)], False),
        ([Generation("a", workload(1)), Generation("old", workload(0), current=False)], True),
        ([Generation("a", workload(1), failure=Failure("Refused", "quota"))], False),
    ],
)
def test_a_switch_is_over_when_all_that_is_wanted_serves(parts, over):
    assert is_over({"A": [Generation("a", workload(1))], "B": parts}) == over


def test_services_that_components_want_are_inherited_from_the_graph_and_others_are_not():
    held = owned("Service", "g-frontend", "g")
    theirs = owned("Service", "g-frontend", "g-frontend", of="DynamoComponentDeployment")
    assert inherited(cache_of(FRONTEND), GRAPH, [FRONTEND], CONFIG) == []
    assert inherited(cache_of(FRONTEND, theirs), GRAPH, [FRONTEND], CONFIG) == []
    assert inherited(cache_of(FRONTEND, owned("Service", "g-gone", "g")), GRAPH, [FRONTEND], CONFIG) == []
    assert inherited(cache_of(FRONTEND, held), GRAPH, [], CONFIG) == [], "of an old way"
    (service,) = inherited(cache_of(FRONTEND, held), GRAPH, [FRONTEND], CONFIG)
    assert service["metadata"]["name"] == "g-frontend"
    assert service["metadata"]["ownerReferences"][0]["uid"] == FRONTEND["metadata"]["uid"]


def test_a_component_that_stands_alone_has_no_graph():
    assert graph_uid(FRONTEND) == "uid-of-g"
    assert graph_uid({"metadata": {"name": "alone"}}) == ""
