"""The annotations that report the serving worker generation to a planner among a graph's components."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.graph.own_planner import lacking
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.graph.steps import planned
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject

from tests.unit.render.building import CONFIG, component, graph_children, of_kind

from .building import deployment, observed, stored, stored_graph

V1, V2 = "nvidia.com/current-worker-hash", "nvidia.com/current-worker-hash-v2"
COMPONENTS = (component("Plan", "planner"), component("One"), component("Two", "decode"))
GRAPH = stored_graph(*COMPONENTS)
GROVE = replace(CONFIG, grove=True)


def hash_of(graph: KubeObject) -> str:
    workers = of_kind(graph_children(graph), "DynamoComponentDeployment")
    (result,) = {objects.labels(each).get("nvidia.com/dynamo-worker-hash") for each in workers} - {None}
    assert result
    return result


def annotated(graph: KubeObject, **annotations: str) -> KubeObject:
    names = {"v1": V1, "v2": V2}
    given = {names[name]: value for name, value in annotations.items()}
    return {**graph, "metadata": {**graph["metadata"], "annotations": given}}


def noted(graph: KubeObject, *there: KubeObject, **fields: Any) -> dict[str, str | None]:
    world = observed(*there, of=graph, **fields)
    return lacking(planned(world), world)


def test_the_serving_generation_is_annotated() -> None:
    serving = hash_of(GRAPH)
    assert noted(GRAPH) == {V1: serving, V2: serving}
    assert noted(annotated(GRAPH, v1="old", v2=serving)) == {V1: serving}
    assert noted(annotated(GRAPH, v1=serving, v2=serving)) == {}


def test_the_hashes_of_the_operator_stay_while_the_planner_reads_the_serving_one() -> None:
    """The operator keeps workers only if it knows both hashes again after a move back."""
    serving = hash_of(GRAPH)
    assert noted(annotated(GRAPH, v1=serving, v2="theirs")) == {}
    assert noted(annotated(GRAPH, v2=serving)) == {}
    assert noted(annotated(GRAPH, v2="theirs")) == {V1: serving, V2: serving}


def test_graphs_without_a_planner_component_are_left_alone() -> None:
    assert noted(stored_graph(*COMPONENTS[1:])) == {}


def test_a_graph_that_cannot_be_rendered_is_left_alone() -> None:
    assert lacking(Plan(), observed(of=GRAPH)) == {}


def test_the_old_generation_is_annotated_until_the_new_one_serves() -> None:
    before = stored_graph(COMPONENTS[0], component("One", main={"image": "old"}), COMPONENTS[2])
    there = [stored(each) for each in of_kind(graph_children(before), "DynamoComponentDeployment")]
    workloads = {objects.name(each): deployment(objects.name(each)) for each in there}
    assert noted(annotated(GRAPH, v1=hash_of(before), v2=hash_of(before)), *there, workloads=workloads) == {}


@pytest.mark.parametrize(
    ("status", "label", "expected"),
    [
        pytest.param({"observedGeneration": 1}, None, {V1: None, V2: None}, id="of one generation"),
        pytest.param({"observedGeneration": 1}, "new", {V1: "new", V2: "new"}, id="updated"),
        pytest.param({"observedGeneration": 0}, "new", {}, id="not yet taken up"),
        pytest.param({"observedGeneration": 1, "updateProgress": {}}, "new", {}, id="updating"),
    ],
)
def test_the_generation_on_grove_comes_from_the_set(
    status: KubeObject, label: str | None, expected: dict[str, str | None]
) -> None:
    graph = annotated(GRAPH, v1="old", v2="old")
    generation = {"generation": label} if label else {"generation": ""}
    (clique_set,) = of_kind(graph_children(graph, GROVE, **generation), "PodCliqueSet")
    assert noted(graph, stored(clique_set, status=status), config=GROVE) == expected
