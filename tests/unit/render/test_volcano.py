"""The Volcano scheduler: queues of graphs, for every kind of workload."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_shared.api.objects import KubeObject

from .building import CONFIG, component, deployment, graph, graph_children, of_kind

OF_SET = "scheduling.grove.io/volcano-queue"
QUEUE, OF_POD, KAI = ("nvidia.com/volcano-queue", "scheduling.volcano.sh/queue-name", "nvidia.com/kai-scheduler-queue")
GROVE = replace(CONFIG, grove=True, kai_queues=frozenset({"dynamo"}))


def on_grove(**annotations: str) -> KubeObject:
    clique: KubeObject = pod_clique_set(annotations)["spec"]["template"]["cliques"][0]
    return clique


def pod_clique_set(annotations: dict[str, str], config: render.RenderConfig = GROVE) -> KubeObject:
    obj = graph(component("Worker"), annotations=annotations)
    (result,) = of_kind(graph_children(obj, config), "PodCliqueSet")
    return result


@pytest.mark.parametrize("pod", [{}, {"schedulerName": ""}])
def test_pods_of_a_graph_wait_in_its_volcano_queue(pod: KubeObject) -> None:
    template = deployment(component("Worker", pod=pod), annotations={QUEUE: " team-a "})["spec"]["template"]
    assert template["spec"]["schedulerName"] == "volcano"
    assert template["metadata"]["annotations"][OF_POD] == "team-a"


def test_without_the_scheduler_pods_are_left_to_the_default_one() -> None:
    config = replace(CONFIG, volcano=False)
    template = deployment(component("Worker"), config, annotations={QUEUE: "team-a"})["spec"]["template"]
    assert "schedulerName" not in template["spec"]


def test_pods_on_grove_wait_in_it_and_in_no_kai_queue() -> None:
    clique = on_grove(**{QUEUE: "team-a"})
    assert clique["spec"]["podSpec"]["schedulerName"] == "volcano"
    assert clique["annotations"][OF_POD] == "team-a"
    assert "kai.scheduler/queue" not in clique["labels"]


def test_grove_creates_its_pod_groups_in_the_queue() -> None:
    """Volcano uses the queue of a PodGroup. Grove creates it in `default` unless its own annotation names another."""
    assert pod_clique_set({QUEUE: "team-a"})["metadata"]["annotations"][OF_SET] == "team-a"
    for made in (pod_clique_set({}), pod_clique_set({QUEUE: "team-a"}, replace(GROVE, volcano=False))):
        assert OF_SET not in made["metadata"].get("annotations", {})


@pytest.mark.parametrize("annotations", [{}, {QUEUE: ""}])
def test_without_a_queue_nothing_of_volcano_is_rendered(annotations: dict[str, str]) -> None:
    template = deployment(component("Worker"), annotations=annotations)["spec"]["template"]
    assert "schedulerName" not in template["spec"]
    assert OF_POD not in template["metadata"].get("annotations", {})


def test_pods_of_another_scheduler_are_left_alone() -> None:
    worker: Any = component("Worker", pod={"schedulerName": "mine"})
    template = deployment(worker, annotations={QUEUE: "team-a"})["spec"]["template"]
    assert template["spec"]["schedulerName"] == "mine"
    assert OF_POD not in template["metadata"].get("annotations", {})


def test_queues_of_two_schedulers_are_rejected() -> None:
    with pytest.raises(render.RenderError, match=r"a pod has one scheduler, and .* selects another"):
        deployment(component("Worker"), annotations={QUEUE: "team-a", KAI: "dynamo"})
