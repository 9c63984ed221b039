"""Replays of a graph's traffic over the REST API, simulated in the planner's worker processes."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dynamo_ctl.simulations.estimation import Estimation
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG
from dynamo_shared.api.resources import CONFIG_MAPS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.bus import EventPublisher
from dynamo_shared.bus.nats import NatsBus, NatsOptions
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Settings
from dynamo_shared.wire.specifications.deployment import GRAPH_DEPLOYMENT
from dynamo_shared.wire.specifications.planning import PlanData

from .dynadmin import EVERYTHING, Api, account, dynadmin

READING = {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}
CLAIMS = {"verbs": ["get"], "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims", "resourceclaimtemplates"]}
#: Time for a worker process to start and simulate, on a busy machine. Seconds.
WITHIN = 200
CONFIG = {
    "mode": "agg",
    "backend": "vllm",
    "optimization_target": "sla",
    "ttft_ms": 300,
    "itl_ms": 20,
    "throughput_adjustment_interval_seconds": 60,
}
#: Prefill takes 10 ms plus 10 ms a thousand tokens; decode takes 5 ms a token plus 0.1 ms a sequence.
PREFILL = {"prefill_isl": [100, 1000, 8000], "prefill_ttft": [11, 20, 90]}
_GRID = [(context, batch) for context in (100, 1000, 10_000) for batch in (1, 10, 100)]
DECODE = {
    "x_kv_usage": [context * batch / 1_000_000 for context, batch in _GRID],
    "y_context_length": [context for context, _ in _GRID],
    "z_itl": [5 + 0.1 * batch for _, batch in _GRID],
    "max_kv_tokens": [1_000_000],
}


@pytest.fixture
async def api(
    control_plane: ControlPlane, nats_server: NatsServer, kube: KubeClient, namespace: str
) -> AsyncIterator[Api]:
    async with dynadmin(control_plane.kubeconfig, nats_server.url, Estimation) as running:
        running.token = await account(kube, namespace, "owner", EVERYTHING, READING)
        yield running


async def graph(kube: KubeClient, namespace: str, config: str = "", **pod: Any) -> KubeObject:
    """`config`: name of the PlannerConfig; empty if the planner does not plan the graph. Its name follows from it."""
    worker = {"name": "worker", "type": "worker", "replicas": 1, "podTemplate": {"spec": {"containers": [], **pod}}}
    name = config.removeprefix("planner-config-") or "unplanned"
    metadata = {"name": name, "namespace": namespace, "annotations": {PLANNER_CONFIG: config} if config else {}}
    spec = {"backendFramework": "vllm", "components": [worker]}
    obj = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": metadata, "spec": spec}
    return await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, obj)


async def config_map(kube: KubeClient, namespace: str, name: str, **data: Any) -> None:
    written = {key.replace("__", "."): json.dumps(value) for key, value in data.items()}
    metadata = {"name": name, "namespace": namespace}
    await kube.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": written})


async def decided(nats: str, obj: KubeObject, *rates: float) -> None:
    """A decision every two minutes, the last of them now."""
    bus = await NatsBus.connect(NatsOptions(servers=(nats,), name="test"))
    began = datetime.now(UTC) - timedelta(minutes=2 * (len(rates) - 1))
    times = [began + timedelta(minutes=2 * number) for number in range(len(rates))]
    publisher = EventPublisher(bus, Settings().platform.cluster_name, now=lambda: times[len(sent)])
    sent: list[float] = []
    try:
        for rate in rates:
            data = PlanData(
                graph_deployment=obj["metadata"]["name"],
                namespace=obj["metadata"]["namespace"],
                policy="adaptive",
                reason="scale_up",
                message="more",
                replicas={"decode": 3},
                current={"decode": 2},
                inputs={"requestsPerSecond": rate, "isl": 1000.0, "osl": 100.0},
            )
            publisher.publish(kind=GRAPH_DEPLOYMENT, obj=obj, event="planned", data=data, causation_id=str(len(sent)))
            assert await publisher.flush(10)
            sent.append(rate)
    finally:
        await bus.close()


@pytest.mark.timeout(300)
async def test_decisions_are_replayed_with_another_price(
    api: Api, kube: KubeClient, nats_server: NatsServer, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/deployments/shop/replay"
    shop = await graph(kube, namespace, "planner-config-shop")
    body = {"changes": {"gpu_price": 0.9}}
    # Each missing input is reported, one after another, with the remedy.
    untraced = await api("POST", path, body)
    assert (untraced.status, untraced.json["type"]) == (409, "urn:dynamo:problem:conflict")
    assert "wait for the planner's next decision" in untraced.json["detail"]
    await decided(nats_server.url, shop, 2, 30, 5)
    assert "planner-config-shop, which does not exist" in (await api("POST", path, body)).json["detail"]
    await config_map(kube, namespace, "planner-config-shop", planner_config__json=CONFIG)
    unprofiled = await api("POST", path, body)
    assert unprofiled.status == 409
    assert "no profile of this graph's engines" in unprofiled.json["detail"]
    await config_map(
        kube, namespace, "planner-profile-data-shop", prefill_raw_data__json=PREFILL, decode_raw_data__json=DECODE
    )

    async with asyncio.timeout(WITHIN):
        answer = await api("POST", path, body)
    assert answer.status == 200, answer.content
    current, changed = answer.json["current"], answer.json["changed"]
    assert (current["config"]["gpu_price"], changed["config"]["gpu_price"]) == (None, 0.9)
    assert current["config"]["ttft_ms"] == changed["config"]["ttft_ms"] == 300
    assert current["requests"] == changed["requests"] > 3000
    assert changed["gpuHours"] <= current["gpuHours"]
    assert current["replicas"][0]["ready"] == {"decode": 2}
    assert current["ttftP99"] >= current["ttftMean"] > 0
    steps = [(each["requestsPerSecond"], round(each["seconds"])) for each in answer.json["traffic"]]
    assert steps[:2] == [(2, 120), (30, 120)]
    assert answer.json["profile"] == "the planner's profile"
    assert any("60 s to serve: no pod start was observed" in each for each in answer.json["notes"])

    trace = [{"requestsPerSecond": 4, "seconds": 120, "isl": 500, "osl": 50}]
    sent = await api("POST", path, {"trace": trace, "startupSeconds": 5})
    assert (sent.status, sent.json["traffic"]) == (200, trace)
    assert sent.json["current"] == sent.json["changed"]


async def test_every_error_of_a_replay_is_reported_at_its_field(api: Api, kube: KubeClient, namespace: str) -> None:
    await graph(kube, namespace, "planner-config-shop")
    await config_map(
        kube, namespace, "planner-config-shop", planner_config__json={**CONFIG, "enable_load_scaling": True}
    )
    path = f"/api/v1/namespaces/{namespace}/deployments/shop/replay"
    trace = [{"requestsPerSecond": 1, "seconds": 60}]

    async def pointers(body: Any) -> set[str]:
        answer = await api("POST", path, body)
        assert answer.status == 422, answer.content
        return {each["pointer"] for each in answer.json["errors"]}

    wrong = {"changes": {"gpu_price": 5, "ttft_ms": 0, "gpu_prise": 1}, "seconds": 1, "startupSeconds": -1}
    expected = {"/changes/gpu_price", "/changes/ttft_ms", "/changes/gpu_prise", "/seconds", "/startupSeconds"}
    assert await pointers(wrong) == expected
    assert await pointers({"trace": [{"requestsPerSecond": -1, "seconds": 60}]}) == {"/trace/0/requestsPerSecond"}
    assert await pointers({"trace": [{"requestsPerSecond": 10_000, "seconds": 3600}]}) == {"/trace"}
    rule = {"changes": {"load_adjustment_interval_seconds": 600}, "trace": trace}
    assert await pointers(rule) == {"/changes/load_adjustment_interval_seconds"}


async def test_a_replay_reads_inputs_with_the_rights_of_its_caller(api: Api, kube: KubeClient, namespace: str) -> None:
    await graph(kube, namespace, "planner-config-shop")
    await graph(kube, namespace)
    base, body = f"/api/v1/namespaces/{namespace}/deployments", {"trace": [{"requestsPerSecond": 1, "seconds": 60}]}
    unplanned = await api("POST", f"{base}/unplanned/replay", body)
    assert unplanned.status == 409
    assert "the planner service does not plan this graph" in unplanned.json["detail"]
    assert (await api("POST", f"{base}/none/replay", body)).status == 404
    without = await account(kube, namespace, "without", EVERYTHING)
    refused = await api("POST", f"{base}/shop/replay", body, token=without)
    assert refused.status == 403
    assert "configmaps" in refused.json["detail"]
    assert (await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "shop")))["spec"]["components"]


async def test_a_replay_counts_claims_that_its_caller_may_read(api: Api, kube: KubeClient, namespace: str) -> None:
    claim = {"name": "gpus", "resourceClaimTemplateName": "four"}
    await graph(kube, namespace, "planner-config-shop", resourceClaims=[claim])
    await config_map(kube, namespace, "planner-config-shop", planner_config__json=CONFIG)
    await config_map(
        kube, namespace, "planner-profile-data-shop", prefill_raw_data__json=PREFILL, decode_raw_data__json=DECODE
    )
    path = f"/api/v1/namespaces/{namespace}/deployments/shop/replay"
    body = {"trace": [{"requestsPerSecond": 1, "seconds": 60, "isl": 500, "osl": 50}]}
    token = await account(kube, namespace, "claimant", EVERYTHING, READING, CLAIMS)
    counted = await api("POST", path, body, token=token)
    assert counted.status == 409, counted.content
    assert "four does not exist" in counted.json["detail"]
