"""Pods that cannot serve, on a real API server: the graph's and the component's conditions, and events, say why."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    EVENTS,
    PODS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient

from .platform import eventually, frontend, graph, hearing, until_event, until_state, worker


@pytest.fixture
async def heard(running_platform, shared_nats_server, namespace) -> AsyncIterator[list[tuple[str, KubeObject]]]:
    async with hearing(shared_nats_server.url, namespace) as heard:
        yield heard


async def until_reason(kube: KubeClient, namespace: str, reason: str) -> dict[str, Any]:
    """The Ready condition of the graph once it has this reason."""

    async def ready() -> KubeObject:
        graph = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "disagg"))
        return objects.condition(graph, "Ready") or {}

    return dict(await eventually(ready, reason, where=lambda condition: condition.get("reason") == reason))


async def available(kube: KubeClient, namespace: str, reason: str) -> dict[str, Any]:
    """The Available condition of the only component, once it has this reason: the graph's may have it before."""

    async def check() -> dict[str, Any] | None:
        (dcd,) = await kube.list(DYNAMO_COMPONENT_DEPLOYMENTS, namespace)
        entries: list[dict[str, Any]] = dcd["status"]["conditions"]
        return next((each for each in entries if each["type"] == "Available" and each["reason"] == reason), None)

    return cast("dict[str, Any]", await eventually(check, f"the component is {reason}"))


async def only_pod(kube: KubeClient, namespace: str) -> str:
    (pod,) = await kube.list(PODS, namespace)
    return str(pod["metadata"]["name"])


NOT_READY = (
    {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-02T03:04:05Z"},
    {"type": "PodScheduled", "status": "True"},
)


async def break_pod(
    kube: KubeClient, namespace: str, name: str, *, conditions: Sequence[dict[str, Any]] = NOT_READY, **container: Any
) -> None:
    """Have a pod's status as a kubelet would write it whose main container does not run."""
    main = {"name": "main", "image": "x", "imageID": "", "ready": False, "started": False, "restartCount": 0}
    status = {"conditions": list(conditions), "containerStatuses": [{**main, **container}]}
    await kube.merge_patch(PODS, ObjectKey(namespace, name), {"status": status}, subresource="status")


async def test_a_pod_that_stops_serving_is_reported_by_name_until_it_serves_again(heard, kube, namespace) -> None:
    reason, says = "CrashLoopBackOff", "container main exited with code 3: no GPU available"
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend()]))
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    pod = await only_pod(kube, namespace)
    await break_pod(
        kube,
        namespace,
        pod,
        state={"waiting": {"reason": reason, "message": "back-off 20s"}},
        lastState={"terminated": {"exitCode": 3, "reason": "Error", "message": "no GPU available"}},
        restartCount=2,
    )
    ready = await until_reason(kube, namespace, reason)
    assert ready["status"] == "False"
    assert ready["message"].startswith("Resources not ready: Frontend: 0 of 1 replicas available")
    assert f"pod {pod}: " in ready["message"]
    assert says in ready["message"]
    component = await available(kube, namespace, reason)
    assert component["status"] == "False"
    assert says in component["message"]
    event = await eventually(
        lambda: next((event for _, event in heard if event["data"].get("reason") == reason), None),
        f"event about {reason}",
    )
    assert event["type"].endswith(".progressing.v1")
    assert says in event["data"]["message"]
    assert pod in event["data"]["message"]
    for_people = await until_event(kube, namespace, reason, "DynamoGraphDeployment")
    assert for_people["type"] == "Warning"
    assert says in for_people["note"]

    await kube.delete(PODS, ObjectKey(namespace, pod))
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")


async def test_pods_that_no_node_has_room_for_are_reported_in_the_schedulers_words(heard, kube, namespace) -> None:
    greedy = worker("Decode", "decode", replicas=5)
    greedy["podTemplate"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "64"}}
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), greedy]))
    ready = await until_reason(kube, namespace, "Unschedulable")
    # The Deployment counts its pods a little after the scheduler has refused them.
    counted = await eventually(
        lambda: until_reason(kube, namespace, "Unschedulable"),
        "all five pods",
        where=lambda ready: " and 2 more: " in ready["message"] and "5 in all" in ready["message"],
    )
    message = counted["message"]
    assert "Insufficient nvidia.com/gpu" in ready["message"]
    assert "preemption" not in message
    pods = await kube.list(PODS, namespace, label_selector=f"{labels.COMPONENT}=Decode")
    first = sorted(pod["metadata"]["name"] for pod in pods)[:3]
    assert f"Decode: 0 of 5 replicas available, 5 updated, 5 in all; pods {', '.join(first)} and 2 more: " in message
    # NATS has it after the status.
    await eventually(
        lambda: any(event["data"].get("reason") == "Unschedulable" for _, event in heard), "event about Unschedulable"
    )


async def test_a_volume_that_is_not_mounted_is_reported_by_the_pods_events(heard, kube, namespace) -> None:
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend()]))
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    pod = await only_pod(kube, namespace)
    uid = (await kube.get(PODS, ObjectKey(namespace, pod)))["metadata"]["uid"]
    now = datetime.now(UTC)
    await kube.create(
        EVENTS,
        {
            **EVENTS.type_meta,
            "metadata": {"name": f"{pod}.1", "namespace": namespace},
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
            "reportingController": "kubelet",
            "reportingInstance": "node",
            "action": "Mount",
            "type": "Warning",
            "reason": "FailedMount",
            "regarding": {"kind": "Pod", "namespace": namespace, "name": pod, "uid": uid},
            "note": 'MountVolume.SetUp failed for volume "models": secret "models" not found',
        },
    )
    long_ago = (now - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {"type": "Ready", "status": "False", "lastTransitionTime": long_ago},
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": long_ago},
        {"type": "PodReadyToStartContainers", "status": "False", "lastTransitionTime": long_ago},
    ]
    await break_pod(kube, namespace, pod, conditions=conditions, state={"waiting": {"reason": "ContainerCreating"}})
    ready = await until_reason(kube, namespace, "VolumeNotMounted")
    assert (
        f"pod {pod}: its volumes, network or devices are not ready 3 minutes after it has a node: " in ready["message"]
    )
    assert 'secret "models" not found' in ready["message"]
    await available(kube, namespace, "VolumeNotMounted")
