"""Failing pods on a real API server: conditions of graph and component, and events, say why."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, PODS, ObjectKey
from dynamo_shared.kube import KubeClient

from .platform import eventually, frontend, graph, hearing, until_event, until_state


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
    """The Available condition of the only component, once it has this reason, which the graph's may have earlier."""

    async def check() -> dict[str, Any] | None:
        (dcd,) = await kube.list(DYNAMO_COMPONENT_DEPLOYMENTS, namespace)
        entries: list[dict[str, Any]] = dcd["status"]["conditions"]
        return next((each for each in entries if each["type"] == "Available" and each["reason"] == reason), None)

    return cast("dict[str, Any]", await eventually(check, f"the component is {reason}"))


async def only_pod(kube: KubeClient, namespace: str) -> str:
    (pod,) = await kube.list(PODS, namespace)
    return str(pod["metadata"]["name"])


NOT_READY = [
    {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-02T03:04:05Z"},
    {"type": "PodScheduled", "status": "True"},
]


async def break_pod(kube: KubeClient, namespace: str, name: str, **container: Any) -> None:
    """Write a pod's status as a kubelet does when its main container does not run."""
    main = {"name": "main", "image": "x", "imageID": "", "ready": False, "started": False, "restartCount": 0}
    status = {"conditions": NOT_READY, "containerStatuses": [{**main, **container}]}
    await kube.merge_patch(PODS, ObjectKey(namespace, name), {"status": status}, subresource="status")


async def test_a_failing_pod_is_reported_by_name_until_it_serves_again(heard, kube, namespace) -> None:
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
