"""Status of components and graphs as tables: observed objects on the left, reported status on the right."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dynamo_pod_builder.status.component import Failure, component_status, failure_of, is_observed
from dynamo_pod_builder.status.graph import Generation, GraphOutcome, graph_status
from dynamo_pod_builder.status.pods import Rank, Trouble
from dynamo_pod_builder.status.workload import readiness
from dynamo_shared.api.gpus import GpuShape
from dynamo_shared.api.resources import DEPLOYMENTS

from tests.building.objects import object_of

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def deployment(name="d", *, desired=2, updated=2, available=2, total=2, generation=3, observed=3, conditions=()):
    counts = {"updatedReplicas": updated, "readyReplicas": available, "availableReplicas": available}
    reported = [{"type": "Available", "status": "True", "reason": "x"}, *conditions]
    status = {"observedGeneration": observed, "replicas": total, **counts, "conditions": reported}
    return object_of(DEPLOYMENTS, name, generation=generation, spec={"replicas": desired}, status=status)


def refused(message, reason="FailedCreate"):
    return {"type": "ReplicaFailure", "status": "True", "reason": reason, "message": message}


LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow"}
QUOTA = refused("exceeded quota: gpus")


def test_troubles_that_are_over_are_not_reported():
    over = [{**QUOTA, "status": "False"}, {**LATE, "status": "True"}]
    assert readiness(deployment(available=0, conditions=over)) == readiness(deployment(available=0))


@pytest.mark.parametrize(
    ("observed", "ready", "says"),
    [
        (None, False, "its workload does not exist yet"),
        (deployment(), True, "2 of 2 replicas available"),
        (deployment(desired=0, updated=0, available=0, total=0), True, "0 of 0"),
        (deployment(desired=0, updated=0, available=0, total=1), False, "0 of 0"),
        ({**deployment(), "spec": {"replicas": 2, "paused": True}}, False, "the Deployment is paused"),
        (deployment(observed=2), False, "has not observed the latest change yet"),
        (deployment(updated=1), False, "1 updated"),
        (deployment(total=3), False, "3 in total"),
        (deployment(available=1), False, "1 of 2"),
        (deployment(available=0, conditions=[QUOTA]), False, "FailedCreate: exceeded quota: gpus"),
        (deployment(available=0, conditions=[LATE]), False, "ProgressDeadlineExceeded: too slow"),
        (deployment(available=0, conditions=[{"type": "ReplicaFailure", "status": "True"}]), False, "0 of 2"),
        (deployment(available=0, conditions=[{"type": "Progressing", "status": "False"}]), False, "0 of 2"),
        (deployment(available=-1), False, "0 of 2"),
    ],
)
def test_readiness(observed, ready, says):
    state = readiness(observed)
    assert state.ready is ready
    assert says in state.message


def test_the_transition_time_changes_only_with_the_status():
    component = {"metadata": {"name": "c", "generation": 1}}
    component["status"] = component_status(component, None, None, NOW)
    later = component_status(component, deployment(available=1), None, NOW + timedelta(seconds=9))
    assert {entry["lastTransitionTime"] for entry in later["conditions"]} == {"2026-01-02T03:04:05Z"}
    component["status"] = later
    ready = component_status(component, deployment(), None, NOW + timedelta(seconds=9))
    assert {entry["lastTransitionTime"] for entry in ready["conditions"]} == {"2026-01-02T03:04:14Z"}


def test_a_failure_is_read_back_from_the_status_until_the_spec_changes():
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


RUNS, NONE_YET = Generation("a", deployment()), Generation("a", None)
AWAY = Failure("WebhookUnavailable", "no answer")
REMAINS = Failure("PredecessorRemains", "waiting until it is deleted")
TAKEN = Failure("NameTaken", "it is taken")
# Errors of rendering begin with the name of their component.
NO_IMAGE = Failure("NotDeployable", "component A: no image")
WIDE = Failure("NotDeployable", "multinode needs an orchestrator")
ROLLING = {"phase": "InProgress", "startTime": "t"}
TWO = {"B": [NONE_YET], "A": [Generation("a", deployment(available=1))]}
FAILED = "failed failed_to_reconcile_the_resources: "
PENDING = "pending some_resources_are_not_ready: Resources not ready: "
UNANSWERED = "pending WebhookUnavailable: Resources not ready: "


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (GraphOutcome({}), f"{FAILED}spec.components is empty: name at least one component to deploy"),
        (GraphOutcome({"A": [RUNS]}), "successful all_resources_are_ready: All resources are ready"),
        (GraphOutcome(TWO), f"{PENDING}A: 1 of 2 replicas available; B: its workload does not exist yet"),
        (GraphOutcome({"A": []}, failure=REMAINS), f"{PENDING}waiting until it is deleted"),
        (GraphOutcome({"A": []}, failure=AWAY), f"{UNANSWERED}no answer"),
        (GraphOutcome({"A": [replace(NONE_YET, failure=AWAY)]}), f"{UNANSWERED}A: no answer"),
        (GraphOutcome({"A": [replace(RUNS, failure=AWAY)]}), f"{UNANSWERED}A: no answer"),
        (
            GraphOutcome({"A": [replace(NONE_YET, failure=TAKEN)], "B": []}),
            f"{FAILED}component A: NameTaken: it is taken",
        ),
        (GraphOutcome({"A": [replace(NONE_YET, failure=NO_IMAGE)]}), f"{FAILED}component A: NotDeployable: no image"),
        (
            GraphOutcome({"A": [RUNS]}, rolling_update=ROLLING),
            "pending rolling_update_in_progress: new worker pods are replacing the old ones",
        ),
        # The schema does not require the phase, and others may write it.
        (GraphOutcome({"A": [RUNS]}, rolling_update={}), "successful all_resources_are_ready: All resources are ready"),
        (GraphOutcome({}, failure=WIDE), f"{FAILED}NotDeployable: multinode needs an orchestrator"),
    ],
)
def test_graph_state(outcome, says):
    status = graph_status(GRAPH, outcome, NOW)
    (ready,) = status["conditions"]
    assert f"{status['state']} {ready['reason']}: {ready['message']}" == says
    assert ready["status"] == str(status["state"] == "successful")
    assert status["observedGeneration"] == 4


@pytest.mark.parametrize("rolling", [None, ROLLING])
def test_a_component_deployment_held_by_a_finalizer_is_named(rolling):
    leaving = {"kind": "DynamoComponentDeployment", "metadata": {"name": "a", "finalizers": ["x.y/z"]}}
    kept = Generation("a", deployment(), leaving=leaving)
    status = graph_status(GRAPH, GraphOutcome({"A": [kept]}, rolling_update=rolling), NOW)
    (ready,) = status["conditions"]
    assert (status["state"], ready["reason"]) == ("pending", "PredecessorRemains")
    assert ready["message"].endswith(
        "A: waiting until Kubernetes has deleted DynamoComponentDeployment a, which still has finalizers: x.y/z"
    )


def test_a_failure_of_both_graph_and_component_is_reported_once():
    nodes = [Failure("NotDeployable", f"component A: multinode: nothing runs {number} nodes") for number in (2, 3)]
    parts = [Generation(f"a-{number}", None, failure=nodes[number]) for number in (0, 1, 0)]
    (ready,) = graph_status(GRAPH, GraphOutcome({"A": parts}, failure=nodes[1]), NOW)["conditions"]
    said = [f"component A: NotDeployable: multinode: nothing runs {number} nodes" for number in (3, 2)]
    assert ready["message"] == "; ".join(said)


def test_replicas_of_old_and_new_generations_are_summed_and_only_new_ones_are_updated():
    parts = [Generation("new", deployment("new")), Generation("old", deployment("old", updated=1), current=False)]
    merged = graph_status(GRAPH, GraphOutcome({"A": parts}), NOW)["components"]["A"]
    assert merged == {
        "componentKind": "Deployment",
        "componentNames": ["new", "old"],
        "replicas": 4,
        "updatedReplicas": 2,
        "readyReplicas": 4,
        "availableReplicas": 4,
    }


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"A": GpuShape(4, 5)}, {"gpusPerEngine": 4, "gpusPerReplica": 5}),
        # A component without GPUs has 0. Without a value, the number is unknown.
        ({"A": GpuShape(0, 0)}, {"gpusPerEngine": 0, "gpusPerReplica": 0}),
        ({"B": GpuShape(4, 5)}, {}),
    ],
)
def test_gpus_of_a_component_are_reported_with_its_replicas_of_all_generations(shapes, said):
    parts = [Generation("new", deployment("new")), Generation("old", deployment("old"), current=False)]
    components = graph_status(GRAPH, GraphOutcome({"A": parts, "B": []}, gpus=shapes), NOW)["components"]
    assert components.keys() == {"A"}, "of B nothing runs yet"
    assert {name: value for name, value in components["A"].items() if name.startswith("gpus")} == said
    assert components["A"]["replicas"] == 4


@pytest.mark.parametrize(
    ("failure", "known"), [(None, True), (REMAINS, True), (AWAY, True), (TAKEN, False), (NO_IMAGE, False)]
)
def test_gpus_of_a_component_deployment_that_cannot_be_created_are_left_out(failure, known):
    reported = component_status(GRAPH, deployment(), failure, NOW, gpus=GpuShape(4, 5))["component"]
    assert (reported.get("gpusPerEngine"), reported.get("gpusPerReplica")) == ((4, 5) if known else (None, None))
    assert "component" not in component_status(GRAPH, None, failure, NOW, gpus=GpuShape(4, 5))


def test_fields_of_other_writers_are_kept():
    assert graph_status(GRAPH, GraphOutcome({}, carried={"restart": {"phase": "Completed"}}), NOW)["restart"] == {
        "phase": "Completed"
    }


CRASH = Trouble(Rank.CRASH, "CrashLoopBackOff", "w-1", "container main exited with code 1: no GPU")
PULL = Trouble(Rank.IMAGE, "ImagePullBackOff", "w-2", "container main cannot pull img:1: not found")


@pytest.mark.parametrize(
    ("conditions", "observed", "reason", "says"),
    [
        ((), (), "DeploymentNotReady", ["1 of 2 replicas available"]),
        ((), [PULL, CRASH], "ImagePullBackOff", ["1 of 2 replicas", "pod w-2: container main cannot pull img:1"]),
        ([LATE], (), "ProgressDeadlineExceeded", ["too slow"]),
        ([LATE], [CRASH], "CrashLoopBackOff", ["too slow", "pod w-1: container main exited with code 1"]),
        (
            [refused('pods "w-x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1')],
            [CRASH],
            "QuotaExceeded",
            ["exceeded quota: gpus", "w-1"],
        ),
        ([refused('admission webhook "a.b" denied the request: no')], (), "WebhookRefused", ["a.b"]),
        ([refused('Internal error: failed calling webhook "a.b": timeout')], (), "WebhookUnavailable", ["timeout"]),
        ([refused('pods "w" is forbidden: violates PodSecurity "restricted"')], (), "PodSecurityRefused", ["violates"]),
        ([refused("error looking up service account ns/x: not found")], (), "ServiceAccountMissing", ["ns/x"]),
        ([refused("out of luck")], (), "FailedCreate", ["FailedCreate: out of luck"]),
        ([LATE, refused("failed quota: q: must specify limits.memory")], (), "QuotaExceeded", ["must specify"]),
    ],
)
def test_conditions_give_the_reason(conditions, observed, reason, says):
    workload = deployment(available=1, conditions=conditions)
    component: dict[str, Any] = {"metadata": {"name": "c", "generation": 1}}
    component["status"] = component_status(component, workload, None, NOW, observed)
    available, ready = component["status"]["conditions"]
    assert (available["status"], available["reason"]) == ("False", reason)
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "ComponentNotReady", available["message"])
    graph = graph_status(GRAPH, GraphOutcome({"Worker": [Generation("w", workload, troubles=observed)]}), NOW)
    (condition,) = graph["conditions"]
    assert graph["state"] == "pending"
    assert condition["reason"] == (reason if reason != "DeploymentNotReady" else "some_resources_are_not_ready")
    for part in says:
        assert part in available["message"]
        assert part in condition["message"]
    # It may pass by itself, so the graph need not fail.
    failure = failure_of(component)
    assert failure is None or failure.passes


def test_a_serving_component_reports_no_problem():
    component = {"metadata": {"name": "c", "generation": 1}}
    available, _ = component_status(component, deployment(), None, NOW, [CRASH])["conditions"]
    assert (available["status"], available["reason"]) == ("True", "DeploymentReady")
    outcome = GraphOutcome({"A": [Generation("a", deployment(), troubles=[CRASH])]})
    assert graph_status(GRAPH, outcome, NOW)["state"] == "successful"


def test_a_rolling_update_reports_what_the_new_pods_wait_for():
    new = Generation("new", deployment(available=1), troubles=[PULL])
    old = Generation("old", deployment(), current=False, troubles=[CRASH])
    status = graph_status(GRAPH, GraphOutcome({"A": [new, old]}, rolling_update={"phase": "InProgress"}), NOW)
    (ready,) = status["conditions"]
    assert (status["state"], ready["reason"]) == ("pending", "ImagePullBackOff")
    assert ready["message"].startswith("new worker pods are replacing the old ones; A: 1 of 2 replicas available")
    assert "w-1" not in ready["message"]


def test_serving_an_earlier_spec_is_not_a_success():
    component: dict[str, Any] = {"metadata": {"name": "c", "generation": 1}}
    assert not is_observed(component)
    component["status"] = component_status(component, deployment(), None, NOW)
    assert is_observed(component)
    component["metadata"]["generation"] = 2
    assert not is_observed(component)
    status = graph_status(GRAPH, GraphOutcome({"A": [Generation("a", deployment(), observed=False)]}), NOW)
    assert status["state"] == "pending"
    assert (
        status["conditions"][0]["message"]
        == "Resources not ready: A: its controller has not acted on the latest change yet"
    )
