"""The real Dynamo runtime in pods of the platform, from the graph's creation until the last worker leaves.

All tests share one graph, and each leaves it unchanged.
"""

import asyncio
import time
from functools import partial

from dynamo_shared.api.conditions import find
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_WORKER_METADATAS,
    PODS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime.settings import Settings

from tests.integration.platform import eventually, until_state

from .configuration import NETWORK
from .graph import DECODE, FRONTEND, MODEL_NAME, PREFILL, without_a_model
from .heard import Event, Heard
from .images import Images
from .node import Node
from .serving import Served, is_ready, ready_since, traffic

#: Images are loaded, so a pod starts as fast as its Python: seconds on an idle machine.
READY_WITHIN = 120.0
#: Seconds after the last change until its effects are over.
SETTLE = 5.0


async def test_the_graph_becomes_successful_by_real_probes(
    kube: KubeClient, deployed: ObjectKey, served: Served
) -> None:
    stored = await until_state(kube, deployed, "successful", READY_WITHIN)
    for name in (FRONTEND, PREFILL, DECODE):
        assert stored["status"]["components"][name]["readyReplicas"] == 1
        (pod,) = await served.pods(name)
        (container,) = pod["spec"]["containers"]
        assert is_ready(pod)
        assert container["readinessProbe"]["httpGet"], "what made it ready"
        assert pod["status"]["hostIP"] == NETWORK.node
    workers = await kube.list(DYNAMO_COMPONENT_DEPLOYMENTS, deployed.namespace)
    assert len(workers) == 3


async def test_workers_may_write_their_records_with_their_service_account(
    kube: KubeClient, successful: ObjectKey, served: Served
) -> None:
    records = await kube.list(DYNAMO_WORKER_METADATAS, successful.namespace)
    pods = [*(await served.pods(PREFILL)), *(await served.pods(DECODE))]
    assert {record["metadata"]["name"] for record in records} == {pod["metadata"]["name"] for pod in pods}


async def test_a_chat_completion_is_answered_through_the_frontends_service(
    served: Served, successful: ObjectKey
) -> None:
    body = await served.first_answer()
    assert body["model"] == MODEL_NAME
    assert body["usage"]["completion_tokens"] == 8
    assert body["choices"][0]["finish_reason"] == "length"
    assert await served.answered(PREFILL) != {}
    for component in (PREFILL, DECODE):
        assert all(count >= 1 for count in (await served.answered(component)).values()), component


async def test_pods_reach_the_frontend_by_name_and_nothing_outside(
    served: Served, successful: ObjectKey, node: Node
) -> None:
    (pod,) = await served.pods(PREFILL)
    url = f"http://{successful.name}-frontend.{successful.namespace}:8000/v1/models"
    asked = f"import urllib.request; print(urllib.request.urlopen({url!r}, timeout=5).read().decode())"
    assert MODEL_NAME in await node.execute(pod, "python3", "-c", asked)
    outside = "import socket; s = socket.socket(); s.settimeout(1); print(s.connect_ex(('198.51.100.1', 443)))"
    assert (await node.execute(pod, "python3", "-c", outside)).strip() != "0"


async def test_model_discovery_publishes_workers_and_their_model(
    heard: Heard, successful: ObjectKey, served: Served, platform: Settings
) -> None:
    joined = await _events(heard, "worker.joined", 0, 2)
    assert {event.data["role"] for event in joined} == {"prefill", "decode"}
    pods = {pod["metadata"]["name"]: pod for name in (PREFILL, DECODE) for pod in await served.pods(name)}
    assert {event.data["pod"] for event in joined} == pods.keys()
    assert {event.data["graphDeployment"] for event in joined} == {successful.name}
    for event in joined:
        assert [card["name"] for card in event.data["models"]] == [MODEL_NAME]
        took = (event.time - ready_since(pods[event.data["pod"]])).total_seconds()
        assert took < platform.platform.etcd.lease_ttl
        print(f"readiness to worker.joined: {max(took, 0):.0f} s (Kubernetes reports whole seconds)")
    (available,) = await _events(heard, "model.available", 0, 1)
    assert available.data["model"] == MODEL_NAME
    assert available.data["workers"] == {"prefill": 1, "decode": 1}


async def test_a_worker_ended_by_kill_9_leaves_within_the_lease_duration_and_joins_again(
    heard: Heard, kube: KubeClient, successful: ObjectKey, served: Served, platform: Settings
) -> None:
    (pod,) = await served.ready_pods(DECODE)
    begun, killed = len(heard.events), time.monotonic()
    await served.kill(pod)
    name = pod["metadata"]["name"]
    (left,) = await _events(heard, "worker.left", begun, 1, platform.platform.etcd.lease_ttl, pod=name)
    took = time.monotonic() - killed
    assert left.data["role"] == "decode"
    await _events(heard, "model.gone", begun, 1, platform.platform.etcd.lease_ttl, model=MODEL_NAME)
    (joined,) = await _events(heard, "worker.joined", begun, 1, READY_WITHIN, pod=name)
    assert joined.time > left.time
    await until_state(kube, successful, "successful", READY_WITHIN)
    (again,) = await served.ready_pods(DECODE)
    assert again["metadata"]["uid"] == pod["metadata"]["uid"]
    assert again["status"]["containerStatuses"][0]["restartCount"] == 1
    print(f"kill -9 to worker.left: {took:.2f} s")


async def test_a_worker_whose_pod_is_deleted_leaves_and_another_joins(
    heard: Heard, kube: KubeClient, successful: ObjectKey, served: Served, platform: Settings
) -> None:
    (pod,) = await served.ready_pods(PREFILL)
    begun, deleted = len(heard.events), time.monotonic()
    await kube.delete(PODS, ObjectKey(successful.namespace, pod["metadata"]["name"]))
    await _events(heard, "worker.left", begun, 1, platform.platform.etcd.lease_ttl, pod=pod["metadata"]["name"])
    print(f"deletion of the pod to worker.left: {time.monotonic() - deleted:.2f} s")
    (joined,) = await _events(heard, "worker.joined", begun, 1, READY_WITHIN, role="prefill")
    assert joined.data["pod"] != pod["metadata"]["name"]
    await until_state(kube, successful, "successful", READY_WITHIN)


async def test_scaling_the_adapter_changes_how_many_workers_answer(
    heard: Heard, kube: KubeClient, successful: ObjectKey, served: Served, node: Node
) -> None:
    assert len(await _all_answer(served)) == 1
    begun = len(heard.events)
    await _scale(kube, node, successful, 3)
    await _events(heard, "worker.joined", begun, 2, READY_WITHIN, role="decode")
    await eventually(lambda: _ready_are(served, 3), "three decode workers ready", READY_WITHIN)
    assert len(await _all_answer(served)) == 3
    begun = len(heard.events)
    await _scale(kube, node, successful, 1)
    await _events(heard, "worker.left", begun, 2, role="decode")
    assert len(await _all_answer(served)) == 1
    await until_state(kube, successful, "successful", READY_WITHIN)


async def test_no_request_fails_while_workers_are_replaced(
    kube: KubeClient, successful: ObjectKey, served: Served
) -> None:
    await served.first_answer()
    before = {pod["metadata"]["name"] for name in (PREFILL, DECODE) for pod in await served.pods(name)}
    async with traffic(served) as sent:
        await _set_variable(kube, successful, "GENERATION", "2")
        await eventually(lambda: _replaced(kube, successful), "the rolling update is complete", 2 * READY_WITHIN)
        await until_state(kube, successful, "successful", READY_WITHIN)
        # Remaining requests of the last worker that left.
        await asyncio.sleep(SETTLE)
    after = {pod["metadata"]["name"] for name in (PREFILL, DECODE) for pod in await served.pods(name)}
    assert not before & after
    assert sent.failed == []
    print(f"replaced under traffic: {sent.answered} answered, {len(sent.failed)} failed")


async def test_no_request_fails_while_workers_come_and_go(
    heard: Heard, kube: KubeClient, successful: ObjectKey, served: Served, node: Node
) -> None:
    await served.first_answer()
    async with traffic(served, tokens=256) as sent:
        for replicas in (3, 1):
            await _scale(kube, node, successful, replicas)
            await eventually(partial(_ready_are, served, replicas), f"{replicas} decode workers", READY_WITHIN)
            await asyncio.sleep(SETTLE)
    await until_state(kube, successful, "successful", READY_WITHIN)
    assert sent.failed == []
    print(f"scaled under traffic: {sent.answered} answered, {len(sent.failed)} failed")


async def test_a_worker_that_cannot_start_keeps_its_graph_from_success_and_the_condition_says_why(
    kube: KubeClient, successful: ObjectKey, runtime_image: Images
) -> None:
    broken = without_a_model(successful.namespace, runtime_image.runtime)
    key = ObjectKey(successful.namespace, broken["metadata"]["name"])
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, broken)

    async def said() -> bool:
        status = (await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)).get("status", {})
        assert status.get("state") != "successful"
        ready = find(status.get("conditions", ()), "Ready") or {"reason": "", "message": ""}
        crashed = ready["reason"] in {"ContainerCrashed", "CrashLoopBackOff"}
        return crashed and "container main exited with code 1" in ready["message"]

    await eventually(said, "the graph's condition reports the process that ended", READY_WITHIN)
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)


async def _set_variable(kube: KubeClient, graph: ObjectKey, name: str, value: str) -> None:
    """Set a variable of the workers' container; another value changes the pod template."""
    stored = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, graph)
    for component in stored["spec"]["components"]:
        if component["name"] != FRONTEND:
            (container,) = component["podTemplate"]["spec"]["containers"]
            container["env"] = [{"name": name, "value": value}]
    await kube.replace(DYNAMO_GRAPH_DEPLOYMENTS, stored)


async def _replaced(kube: KubeClient, graph: ObjectKey) -> bool:
    status = (await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, graph))["status"]
    return bool(status.get("rollingUpdate", {}).get("phase") == "Completed")


async def _events(heard: Heard, name: str, after: int, count: int, within: float = 30.0, **data: object) -> list[Event]:
    """Exactly this number of events of a kind."""

    async def enough() -> list[Event] | None:
        result = heard.of(name, after, **data)
        return result if len(result) >= count else None

    result = await eventually(
        enough, f"{count} times {name} {data} among {[e.name for e in heard.events[after:]]}", within
    )
    assert len(result) == count, result
    return list(result)


async def _scale(kube: KubeClient, node: Node, graph: ObjectKey, replicas: int) -> None:
    """Scale the adapter as a user does, by `kubectl scale`."""
    (adapter,) = await kube.list(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, graph.namespace)
    target = f"dynamographdeploymentscalingadapter/{adapter['metadata']['name']}"
    await node.kubectl("--namespace", graph.namespace, "scale", target, f"--replicas={replicas}")


async def _ready_are(served: Served, count: int) -> bool:
    return len(await served.pods(DECODE)) == len(await served.ready_pods(DECODE)) == count


async def _all_answer(served: Served) -> set[str]:
    """The decode workers, once each of them has helped to answer."""

    async def check() -> set[str] | None:
        there = {pod["metadata"]["name"] for pod in await served.pods(DECODE)}
        return there if there == await served.answering(DECODE, 24) else None

    return set(await eventually(check, "exactly the decode workers answer", 60))
