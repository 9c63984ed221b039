"""Step `desire`: what a graph should become, and what of it is kept as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.graph.steps import planned
from dynamo_pod_builder.reconcilers.graph.steps.desired import desire
from dynamo_pod_builder.render import CheckpointDefaults
from dynamo_pod_builder.starts import Catalogue
from dynamo_shared.api.objects import KubeObject

from tests.unit.render.building import CONFIG, component, graph_children, of_kind

from .building import observed, stored, stored_graph

GROVE = replace(CONFIG, grove=True)


def replicas(plan: Plan) -> dict[str, int]:
    return {
        each["spec"]["name"]: each["spec"]["replicas"]
        for each in of_kind(list(plan.desired), "DynamoComponentDeployment")
    }


def adapter(component: str, number: int, owner: str = "graph-uid") -> KubeObject:
    reference = {"kind": "DynamoGraphDeployment", "name": "graph", "uid": owner, "controller": True}
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeploymentScalingAdapter",
        "metadata": {"name": f"graph-{component.lower()}", "ownerReferences": [reference]},
        "spec": {"replicas": number, "dgdRef": {"name": "graph", "componentName": component}},
    }


ASKING = component("One", replicas=1, scalingAdapter={})


@pytest.mark.parametrize(
    ("of", "there", "expected"),
    [
        pytest.param(ASKING, [], 1, id="no adapter yet"),
        pytest.param(ASKING, [adapter("One", 3)], 3, id="the adapter's number counts"),
        pytest.param(ASKING, [adapter("One", 0)], 0, id="none is a number, too"),
        pytest.param(component("One", replicas=1), [adapter("One", 3)], 1, id="the component asks for none"),
        pytest.param(ASKING, [adapter("Two", 3)], 1, id="of another component"),
        pytest.param(ASKING, [adapter("One", 3, owner="other")], 1, id="of another graph"),
    ],
)
def test_replicas_are_the_adapters(of, there, expected):
    graph = stored_graph(of)
    assert replicas(desire(Plan(), observed(*there, of=graph))) == {"One": expected}


def test_an_engine_that_cannot_be_changed_is_kept():
    graph = stored_graph(component("One"))
    (there,) = of_kind(graph_children(graph), "DynamoComponentDeployment")
    there = stored({**there, "spec": {**there["spec"], "backendFramework": "sglang"}})
    (desired,) = of_kind(list(desire(Plan(), observed(there, of=graph)).desired), "DynamoComponentDeployment")
    assert desired["spec"]["backendFramework"] == "sglang"


def test_cliques_that_are_there_keep_their_order():
    graph = stored_graph(component("One"), component("Two", "decode"))
    (there,) = of_kind(graph_children(graph, GROVE), "PodCliqueSet")
    order = [each["name"] for each in there["spec"]["template"]["cliques"]]
    there["spec"]["template"]["cliques"].reverse()
    plan = desire(Plan(), observed(stored(there), of=graph, config=GROVE))
    assert plan.pod_clique_set is not None
    assert [each["name"] for each in plan.pod_clique_set["spec"]["template"]["cliques"]] == order[::-1]


def checkpoint(**status: Any) -> KubeObject:
    identity = {"model": "m", "backendFramework": "vllm"}
    metadata = {"name": "c", "namespace": "ns", "uid": "c", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"identity": identity}, "status": status}


@pytest.mark.parametrize(
    ("catalogue", "status"),
    [
        (Catalogue(), {"checkpointName": "c", "ready": False}),
        (
            Catalogue({"c": checkpoint(phase="Creating")}),
            {"checkpointName": "c", "ready": False, "identityHash": "IDENTITY"},
        ),
    ],
)
def test_what_components_start_from(catalogue, status):
    graph = stored_graph(component("One", experimental={"checkpoint": {"checkpointRef": "c"}}))
    config = replace(CONFIG, checkpoints=CheckpointDefaults(enabled=True))
    result = desire(Plan(), observed(of=graph, config=config, checkpoints=catalogue)).starts.status["One"]
    if "identityHash" in result:
        result = {**result, "identityHash": "IDENTITY"}
    assert result == status


@pytest.mark.parametrize(
    ("graph", "reason", "message"),
    [
        (stored_graph(), "NotDeployable", "spec.components: names no component; add at least one"),
        (stored_graph(component("One"), component("one")), "NotDeployable", "One"),
        (stored_graph(component("One", "nonsense")), "InvalidSpec", "spec.components[0].type"),
    ],
)
def test_a_graph_that_cannot_be_rendered_is_planned_as_a_failure(graph, reason, message):
    plan = planned(observed(of=graph))
    assert plan.children is None, "nothing is written"
    assert plan.failure is not None
    assert plan.failure.reason == reason
    assert message in plan.failure.message
