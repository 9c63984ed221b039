"""The KAI scheduler: queues of graphs on Grove."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_shared.api.objects import KubeObject

from .building import component, graph, graph_children, of_kind

CONFIG = render.RenderConfig(grove=True, kai_queues=frozenset({"dynamo", "team-a"}))
QUEUE = "nvidia.com/kai-scheduler-queue"


def clique(config: render.RenderConfig, queue: str = "", **pod: Any) -> KubeObject:
    obj = graph(component(pod=pod), annotations={QUEUE: queue} if queue else {})
    (result,) = of_kind(graph_children(obj, config), "PodCliqueSet")
    made: KubeObject = result["spec"]["template"]["cliques"][0]
    return made


@pytest.mark.parametrize("pod", [{}, {"schedulerName": ""}])
@pytest.mark.parametrize(("annotation", "queue"), [("", "dynamo"), (" team-a ", "team-a")])
def test_pods_wait_in_the_queue_of_their_graph(annotation, queue, pod) -> None:
    result = clique(CONFIG, annotation, **pod)
    assert result["labels"]["kai.scheduler/queue"] == queue
    assert result["spec"]["podSpec"]["schedulerName"] == "kai-scheduler"


def test_pods_of_another_scheduler_are_left_alone() -> None:
    result = clique(CONFIG, schedulerName="mine")
    assert "kai.scheduler/queue" not in result["labels"]
    assert result["spec"]["podSpec"]["schedulerName"] == "mine"


def test_without_the_scheduler_no_queue_is_set() -> None:
    result = clique(replace(CONFIG, kai_queues=None), "team-a")
    assert "kai.scheduler/queue" not in result["labels"]
    assert "schedulerName" not in result["spec"]["podSpec"]


def test_an_invalid_queue_is_rejected() -> None:
    with pytest.raises(render.RenderError, match="has no queue 'team-b'; there are: dynamo, team-a"):
        clique(CONFIG, "team-b")
