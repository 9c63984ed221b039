"""Status of components and graphs as tables: what is observed on the left, what is told on the right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from dynamo_pod_builder.status.component import Failure, component_status, failure_of, readiness
from dynamo_pod_builder.status.graph import Generation, Outcome, graph_status

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def deployment(name="d", *, wanted=2, updated=2, available=2, total=2, generation=3, observed=3, conditions=()):
    return {
        "metadata": {"name": name, "generation": generation},
        "spec": {"replicas": wanted},
        "status": {
            "observedGeneration": observed,
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": available,
            "availableReplicas": available,
            "conditions": [{"type": "Available", "status": "True", "reason": "x"}, *conditions],
        },
    }


@pytest.mark.parametrize(
    ("observed", "ready", "says"),
    [
        (None, False, "nothing runs its pods yet"),
        (deployment(), True, "2 of 2 replicas available"),
        (deployment(wanted=0, updated=0, available=0, total=0), True, "0 of 0"),
        (deployment(wanted=0, updated=0, available=0, total=1), False, "0 of 0"),
        (deployment(observed=2), False, "not yet observed"),
        (deployment(updated=1), False, "1 updated"),
        (deployment(total=3), False, "3 in all"),
        (deployment(available=1), False, "1 of 2"),
        (
            deployment(
                available=0,
                conditions=[
                    {
                        "type": "ReplicaFailure",
                        "status": "True",
                        "reason": "FailedCreate",
                        "message": "exceeded quota: gpus",
                    }
                ],
            ),
            False,
            "FailedCreate: exceeded quota: gpus",
        ),
        (
            deployment(
                available=0,
                conditions=[
                    {
                        "type": "Progressing",
                        "status": "False",
                        "reason": "ProgressDeadlineExceeded",
                        "message": "too slow",
                    }
                ],
            ),
            False,
            "ProgressDeadlineExceeded: too slow",
        ),
    ],
)
def test_readiness(observed, ready, says):
    state = readiness(observed)
    assert state.ready is ready
    assert says in state.message


def test_transition_time_moves_only_with_the_status():
    component = {"metadata": {"name": "c", "generation": 1}}
    component["status"] = component_status(component, None, None, NOW)
    later = component_status(component, deployment(available=1), None, NOW + timedelta(seconds=9))
    assert {entry["lastTransitionTime"] for entry in later["conditions"]} == {"2026-01-02T03:04:05Z"}
    component["status"] = later
    ready = component_status(component, deployment(), None, NOW + timedelta(seconds=9))
    assert {entry["lastTransitionTime"] for entry in ready["conditions"]} == {"2026-01-02T03:04:14Z"}


def test_failure_is_read_back_from_status_until_the_spec_changes():
    component = {"metadata": {"name": "c", "generation": 1}}
    failure = Failure("RefusedByApiServer", "spec.containers[0].image: Required value")
    component["status"] = component_status(component, None, failure, NOW)
    assert failure_of(component) == failure
    component["metadata"]["generation"] = 2
    assert failure_of(component) is None


def test_waiting_is_not_a_failure():
    component = {"metadata": {"name": "c", "generation": 1}}
    component["status"] = component_status(component, None, None, NOW)
    assert failure_of(component) is None


GRAPH = {"metadata": {"name": "g", "generation": 4}}


@pytest.mark.parametrize(
    ("outcome", "state", "reason", "says"),
    [
        (Outcome({}), "failed", "failed_to_reconcile_the_resources", "spec.components is empty"),
        (
            Outcome({"A": [Generation("a", deployment())]}),
            "successful",
            "all_resources_are_ready",
            "All resources are ready",
        ),
        (
            Outcome({"B": [Generation("b", None)], "A": [Generation("a", deployment(available=1))]}),
            "pending",
            "some_resources_are_not_ready",
            "Resources not ready: A: 1 of 2 replicas available, 2 updated, 2 in all; B: nothing runs its pods yet",
        ),
        (
            Outcome({"A": [Generation("a", None, failure=Failure("NameTaken", "it is taken"))], "B": []}),
            "failed",
            "failed_to_reconcile_the_resources",
            "component A: NameTaken: it is taken",
        ),
        (
            Outcome({"A": [Generation("a", deployment())]}, rolling_update={"phase": "InProgress", "startTime": "t"}),
            "pending",
            "rolling_update_in_progress",
            "replacing",
        ),
        (
            Outcome({}, failure=Failure("NotDeployable", "multinode needs an orchestrator")),
            "failed",
            "failed_to_reconcile_the_resources",
            "multinode needs an orchestrator",
        ),
    ],
)
def test_graph_state(outcome, state, reason, says):
    status = graph_status(GRAPH, outcome, NOW)
    (ready,) = status["conditions"]
    assert (status["state"], ready["reason"]) == (state, reason)
    assert ready["status"] == str(state == "successful")
    assert says in ready["message"]
    assert status["observedGeneration"] == 4


def test_replicas_of_old_and_new_generations_are_summed_and_only_new_ones_are_updated():
    parts = [Generation("new", deployment("new")), Generation("old", deployment("old", updated=1), current=False)]
    merged = graph_status(GRAPH, Outcome({"A": parts}), NOW)["components"]["A"]
    assert merged == {
        "componentKind": "Deployment",
        "componentNames": ["new", "old"],
        "replicas": 4,
        "updatedReplicas": 2,
        "readyReplicas": 4,
        "availableReplicas": 4,
    }


def test_what_others_write_is_carried_through():
    assert graph_status(GRAPH, Outcome({}, carried={"restart": {"phase": "Completed"}}), NOW)["restart"] == {
        "phase": "Completed"
    }
