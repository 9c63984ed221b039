"""What the status of a workload means, for each kind of workload."""

from typing import Any

import pytest
from dynamo_pod_builder.status.workload import (
    is_observed,
    readiness,
    ready_replicas,
    refusal,
    refusal_of,
    replicas_of,
    served_groups,
    stateful_set_lacking,
)
from dynamo_shared.api.registry import labels


def groups(desired: int = 2, available: bool = True, **status: Any) -> dict[str, Any]:
    counts = {"replicas": desired, "updatedReplicas": desired, "readyReplicas": desired, **status}
    condition = {"type": "Available", "status": "True" if available else "False"}
    return {
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "w"},
        "spec": {"replicas": desired},
        "status": {**counts, "conditions": [condition]},
    }


@pytest.mark.parametrize(
    ("workload", "ready", "says"),
    [
        (groups(), True, "2 of 2 groups ready"),
        (groups(readyReplicas=1), False, "1 of 2 groups ready"),
        (groups(updatedReplicas=1), False, "2 of 2 groups ready, 1 updated, 2 in total"),
        (groups(replicas=3), False, "2 of 2 groups ready, 2 updated, 3 in total"),
        (groups(available=False), False, "2 of 2 groups ready"),
        (groups(0, available=False), True, "0 of 0 groups ready"),
        (None, False, "its workload does not exist yet"),
    ],
)
def test_groups_are_ready_when_all_of_them_serve(workload, ready, says) -> None:
    state = readiness(workload)
    assert (state.ready, state.message) == (ready, says)


@pytest.mark.parametrize(("reported", "observed"), [(2, False), (3, True), (None, True)])
def test_counts_of_groups_are_used_only_for_the_generation_that_their_controller_names(reported, observed) -> None:
    """Right after a change, all groups of the former template serve. Older releases do not report the generation."""
    workload = groups() if reported is None else groups(observedGeneration=reported)
    workload["metadata"]["generation"] = 3
    assert is_observed(workload) is observed
    assert readiness(workload).ready is observed
    if not observed:
        assert readiness(workload).message == "the LeaderWorkerSet controller has not observed the latest change yet"


def test_ready_groups_count_as_available() -> None:
    assert ready_replicas(groups(readyReplicas=1)) == (1, 1)
    assert ready_replicas(None) == (0, 0)
    deployment = {"kind": "Deployment", "status": {"readyReplicas": 2, "availableReplicas": 1}}
    assert ready_replicas(deployment) == (1, 2)


def test_replicas_in_a_status() -> None:
    assert replicas_of(groups()) == {
        "componentKind": "LeaderWorkerSet",
        "componentNames": ["w"],
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
    }
    assert replicas_of(None) is None


def test_a_negative_number_counts_as_zero() -> None:
    """Schemas of other projects have no minimum, and the API server rejects a status that repeats such a number."""
    counts: dict[str, Any] = {"replicas": -1, "updatedReplicas": -1, "readyReplicas": -(2**31)}
    reported = replicas_of(groups(**counts)) or {}
    assert {reported[name] for name in counts} == {0}
    assert ready_replicas(groups(**counts)) == (0, 0)


def of_grove(kind: str, serving: str, desired: int = 2, **changed: Any) -> dict[str, Any]:
    status = {"observedGeneration": 3, "replicas": desired, "updatedReplicas": desired, serving: desired, **changed}
    return {
        "kind": kind,
        "metadata": {"name": "g-0-w", "generation": 3},
        "spec": {"replicas": desired},
        "status": {name: value for name, value in status.items() if value is not None},
    }


@pytest.mark.parametrize(
    ("kind", "serving", "unit"),
    [("PodClique", "readyReplicas", "pods"), ("PodCliqueScalingGroup", "availableReplicas", "groups")],
)
def test_grove_workloads_are_ready_when_all_counts_are_as_desired(kind, serving, unit) -> None:
    def state(**changed: Any) -> tuple[bool, str]:
        result = readiness(of_grove(kind, serving, **changed))
        return result.ready, result.message

    assert state() == (True, f"2 of 2 {unit} ready")
    assert state(desired=0) == (True, f"0 of 0 {unit} ready")
    assert state(**{serving: 1}) == (False, f"1 of 2 {unit} ready")
    assert state(updatedReplicas=0) == (False, f"2 of 2 {unit} ready, 0 updated, 2 in total")
    assert state(updatedReplicas=3) == (True, f"2 of 2 {unit} ready"), "Grove may count what is gone"
    assert state(replicas=3) == (False, f"2 of 2 {unit} ready, 2 updated, 3 in total")
    assert state(observedGeneration=2) == (False, f"Grove has not observed the latest change of the {kind} yet")
    assert state(observedGeneration=None) == (False, f"Grove has not observed the latest change of the {kind} yet")
    assert replicas_of(of_grove(kind, serving)) == replicas_of(of_grove(kind, serving, updatedReplicas=3))
    assert replicas_of(of_grove(kind, serving)) == {
        "componentKind": kind,
        "componentNames": ["g-0-w"],
        "replicas": 2,
        "updatedReplicas": 2,
        serving: 2,
    }


QUOTA = "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"


def refused_clique(attempt: str, replicas: int | None = None, code: str = "ERR_CREATE_POD") -> dict[str, Any]:
    """The status of Grove 0.1.0-alpha.8."""
    words = f'message: failed to create Pod:  for PodClique q/c, cause: pods "c-{attempt}" is forbidden: {QUOTA}'
    counts = {} if replicas is None else {"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": 0}
    error = {"code": code, "description": f"failed to sync Pod: [Operation: Sync, Code: {code}] {words}"}
    metadata = {"name": "c", "generation": 2}
    status = {"observedGeneration": 1, **counts, "lastErrors": [error]}
    return {"kind": "PodClique", "metadata": metadata, "spec": {"replicas": 2}, "status": status}


@pytest.mark.parametrize("replicas", [None, 1])
def test_pods_that_grove_cannot_create_are_reported_without_their_changing_names(replicas: int | None) -> None:
    first, second = readiness(refused_clique("k4th6", replicas)), readiness(refused_clique("lsltt", replicas))
    assert first == second
    assert (first.ready, first.reason, first.message) == (
        False,
        "QuotaExceeded",
        f"its pods cannot be created: {QUOTA}",
    )


@pytest.mark.parametrize(
    "clique",
    [refused_clique("a", 2), refused_clique("a", 1, "ERR_CONTINUE_RECONCILE_AND_REQUEUE"), {"kind": "PodClique"}],
)
def test_past_and_harmless_errors_of_grove_are_not_reported(clique: dict[str, Any]) -> None:
    assert refusal_of({"metadata": {"name": "c"}, "spec": {"replicas": 2}, **clique}) is None


def test_a_refusal_of_an_unknown_kind_has_the_reason_of_kubernetes() -> None:
    assert refusal('pods "c-a" is forbidden: no') == ("FailedCreate", "no")


def group_pods(*groups: int) -> list[dict[str, Any]]:
    return [{"metadata": {"labels": {"leaderworkerset.sigs.k8s.io/group-index": str(each)}}} for each in groups]


@pytest.mark.parametrize(
    ("pods", "lacks"),
    [([], "g"), ([0, 0], "g"), ([0, 1, 1], "g-0"), ([0, 0, 1], "g-1"), ([0, 0, 1, 1], ""), ([0, 0, 0, 1, 1], "")],
)
def test_the_stateful_set_that_lacks_pods(pods: list[int], lacks: str) -> None:
    result = {"kind": "LeaderWorkerSet", "metadata": {"name": "g"}}
    result["spec"] = {"replicas": 2, "leaderWorkerTemplate": {"size": 2}}
    assert stateful_set_lacking(result, group_pods(*pods)) == lacks


def test_only_leader_worker_sets_have_stateful_sets() -> None:
    assert stateful_set_lacking(None, []) == ""
    assert stateful_set_lacking({"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2}}, []) == ""


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        pytest.param(["0-0", "0-1", "1-0", "1-1"], 2, id="all"),
        pytest.param(["1-0", "1-1"], 2, id="the last one"),
        pytest.param(["0-0", "0-1", "1-1"], 1, id="the first one"),
        pytest.param(["0-0"], 0, id="none as a whole"),
    ],
)
def test_groups_are_counted_up_to_the_last_serving_one(ready, expected):
    pods = [
        {
            "metadata": {"labels": {labels.LWS_GROUP: name[0]}},
            "status": {"conditions": [{"type": "Ready", "status": str(name in ready)}]},
        }
        for name in ("0-0", "0-1", "1-0", "1-1", "9-0")
    ]
    workload: dict[str, Any] = {"kind": "LeaderWorkerSet", "metadata": {"name": "g"}}
    workload["spec"] = {"replicas": 2, "leaderWorkerTemplate": {"size": 2}}
    assert served_groups(workload, pods) == expected
    # A leader without its worker does not serve.
    assert served_groups(workload, [pods[2]]) == 0
    assert served_groups({**workload, "kind": "Deployment"}, pods) == 0
    # Anyone who may scale it can write the largest number: counting up to that would block all graphs for hours.
    workload["spec"]["replicas"] = 2**31 - 1
    assert served_groups(workload, pods) == expected
