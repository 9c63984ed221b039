from typing import Any

import pytest
from dynamo_ctl.summary import component_line, graph_line, is_successful
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS

from tests.building.objects import object_of


def graph(**status: Any) -> dict[str, Any]:
    components = [{"name": "A"}, {"name": "B", "replicas": 2}, {"name": "C", "replicas": 0}]
    fields = {"generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z", "status": status}
    spec = {"backendFramework": "vllm", "components": components}
    return object_of(DYNAMO_GRAPH_DEPLOYMENTS, "g", "n", spec=spec, **fields)


def counts(ready: int, updated: int | None = None) -> dict[str, int]:
    return {"readyReplicas": ready, "updatedReplicas": ready if updated is None else updated}


@pytest.mark.parametrize(
    ("components", "ready"),
    [
        ({}, 0),
        ({"A": counts(1)}, 1),
        ({"A": counts(1), "B": counts(1)}, 1),
        ({"A": counts(1), "B": counts(2), "C": counts(0)}, 3),
        ({"A": counts(1, updated=0)}, 0),
        ({"A": {"availableReplicas": 1, "updatedReplicas": 1}}, 1),
    ],
)
def test_components_with_all_replicas_of_the_newest_kind_are_ready(components: dict[str, Any], ready: int) -> None:
    line = graph_line(graph(components=components))
    assert line.components == f"{ready}/3"


def test_the_message_is_that_of_the_ready_condition() -> None:
    shown = graph_line(graph(state="pending", conditions=[{"type": "Ready", "message": "not yet"}]))
    assert (shown.state, shown.message, shown.backend) == ("pending", "not yet", "vllm")


def test_a_graph_without_a_status_is_initializing() -> None:
    line = graph_line({"metadata": {"name": "g"}})
    assert (line.state, line.components, line.backend, line.message) == ("initializing", "0/0", "-", "")


def test_success_counts_only_for_the_present_generation() -> None:
    assert is_successful(graph(state="successful", observedGeneration=2))
    assert not is_successful(graph(state="successful", observedGeneration=1))
    assert not is_successful(graph(state="pending", observedGeneration=2))


def test_a_component_shows_its_replicas() -> None:
    line = component_line(
        {
            "metadata": {"name": "g-a", "namespace": "n", "labels": {"nvidia.com/dynamo-component": "A"}},
            "spec": {"type": "worker", "replicas": 3},
            "status": {
                "component": {"readyReplicas": 2},
                "conditions": [{"type": "Available", "status": "False", "message": "2 of 3"}],
            },
        }
    )
    assert (line.component, line.type, line.replicas, line.available, line.message) == (
        "A",
        "worker",
        "2/3",
        "False",
        "2 of 3",
    )
