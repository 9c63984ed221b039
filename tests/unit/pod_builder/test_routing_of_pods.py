"""The reconciler that runs when a pod changes, and that it runs only if the pod's problem changes."""

from typing import Any

import pytest
from dynamo_pod_builder.pods import index, pods_of
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    LEADER_WORKER_SETS,
    PODS,
    ObjectKey,
)
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache

from tests.unit.routed import tasks_of

from .indexed import routes_of

OF_DEPLOYMENT = {"nvidia.com/selector": "g-worker-abc", "nvidia.com/dynamo-graph-deployment-name": "g"}
OF_LWS = {"leaderworkerset.sigs.k8s.io/name": "g-wide", "nvidia.com/dynamo-graph-deployment-name": "g"}
OF_GROVE = {**OF_DEPLOYMENT, "grove.io/podclique": "g-0-worker"}
OF_GROUP = {**OF_DEPLOYMENT, "grove.io/podclique": "g-0-wide-0-wide-ldr", "grove.io/podcliquescalinggroup": "g-0-wide"}


def pod(object_labels: dict[str, str], waiting: str = "", restarts: int = 0, name: str = "p") -> dict[str, Any]:
    state = {"waiting": {"reason": waiting}} if waiting else {"running": {"startedAt": "2026-01-02T03:04:05Z"}}
    container = {"name": "main", "ready": False, "restartCount": restarts, "state": state}
    if waiting == "CrashLoopBackOff":
        container["lastState"] = {"terminated": {"exitCode": 1}}
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "labels": object_labels}
    return {"metadata": metadata, "spec": {}, "status": {"containerStatuses": [container]}}


def tasks(old: dict[str, Any] | None, new: dict[str, Any] | None) -> list[Task]:
    return tasks_of(routes_of(ObjectCache()), PODS, ObjectKey("ns", "p"), old, new)


@pytest.mark.parametrize(
    ("object_labels", "resource", "name"),
    [
        (OF_DEPLOYMENT, DYNAMO_COMPONENT_DEPLOYMENTS, "g-worker-abc"),
        (OF_LWS, DYNAMO_COMPONENT_DEPLOYMENTS, "g-wide"),
        (OF_GROVE, DYNAMO_GRAPH_DEPLOYMENTS, "g"),
        (OF_GROUP, DYNAMO_GRAPH_DEPLOYMENTS, "g"),
    ],
)
def test_a_pods_problem_reconciles_its_owner(object_labels, resource, name) -> None:
    fine, broken = pod(object_labels), pod(object_labels, "ImagePullBackOff")
    expected = [Task.of(resource, ObjectKey("ns", name))]
    assert tasks(fine, broken) == expected
    assert tasks(broken, fine) == expected
    assert tasks(None, broken) == expected
    assert tasks(broken, None) == expected


def test_a_pods_problem_reconciles_the_owner_of_groups_with_a_shortened_name() -> None:
    cache = ObjectCache()
    owner = {"kind": "DynamoComponentDeployment", "name": "g-wider", "uid": "u", "controller": True}
    metadata = {"name": "g-wide", "namespace": "ns", "uid": "l", "resourceVersion": "1", "ownerReferences": [owner]}
    cache.put(LEADER_WORKER_SETS, {"metadata": metadata})
    result = tasks_of(routes_of(cache), PODS, ObjectKey("ns", "p"), None, pod(OF_LWS, "ImagePullBackOff"))
    assert result == [Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey("ns", "g-wider"))]


def test_changes_without_a_new_problem_reconcile_nothing() -> None:
    fine, broken = pod(OF_DEPLOYMENT), pod(OF_DEPLOYMENT, "CrashLoopBackOff", 3)
    assert tasks(None, fine) == []
    assert tasks(fine, pod(OF_DEPLOYMENT, "ContainerCreating")) == []
    assert tasks(fine, None) == []
    assert tasks(broken, pod(OF_DEPLOYMENT, "CrashLoopBackOff", 4)) == []


@pytest.mark.parametrize(("phase", "asked"), [("InProgress", True), ("Completed", False)])
def test_a_deleted_pod_continues_a_rolling_update(phase: str, asked: bool) -> None:
    """With Recreate, new pods wait for the last old one, and no workload reports its end."""
    cache = ObjectCache()
    metadata = {"name": "g", "namespace": "ns", "uid": "g", "resourceVersion": "1"}
    cache.put(
        DYNAMO_GRAPH_DEPLOYMENTS, {"metadata": metadata, "spec": {}, "status": {"rollingUpdate": {"phase": phase}}}
    )
    gone = tasks_of(routes_of(cache), PODS, ObjectKey("ns", "p"), pod(OF_DEPLOYMENT), None)
    assert gone == ([Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "g"))] if asked else [])


def test_a_pod_without_an_owner_reconciles_nothing() -> None:
    assert tasks(None, pod({"nvidia.com/dynamo-component": "x"}, "ImagePullBackOff")) == []


@pytest.mark.parametrize(
    ("kind", "name", "observed"),
    [
        ("Deployment", "g-worker-abc", ["d"]),
        ("LeaderWorkerSet", "g-wide", ["l"]),
        ("PodClique", "g-0-worker", ["q"]),
        ("PodCliqueScalingGroup", "g-0-wide", ["r"]),
        ("Deployment", "other", []),
    ],
)
async def test_pods_are_matched_by_their_workload(kind, name, observed) -> None:
    cache = ObjectCache()
    index(cache)
    for letter, object_labels in (("d", OF_DEPLOYMENT), ("l", OF_LWS), ("q", OF_GROVE), ("r", OF_GROUP)):
        cache.put(PODS, pod(object_labels, name=letter))
    workload = {"kind": kind, "metadata": {"name": name, "namespace": "ns"}}
    assert sorted(each["metadata"]["name"] for each in await pods_of(cache, workload)) == observed
    assert await pods_of(cache, None) == []
