"""Estimates of the REST API on real servers."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from dynamo_ctl.simulations.estimation import Estimation
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_dynadmin.api.deploy_models import Estimate
from dynamo_shared.kube import KubeClient

from .dynadmin import EVERYTHING, Api, account, dynadmin


@pytest.fixture
async def api(
    control_plane: ControlPlane, nats_server: NatsServer, kube: KubeClient, namespace: str
) -> AsyncIterator[Api]:
    async with dynadmin(control_plane.kubeconfig, nats_server.url, Estimation) as running:
        running.token = await account(kube, namespace, "owner", EVERYTHING)
        yield running


OBJECTIVE = {
    "mode": "objective",
    "name": "qwen",
    "model": {"name": "Qwen/Qwen3-32B"},
    "backend": "vllm",
    # One GPU, so that there are no engines of two roles to simulate.
    "hardware": {"gpuSku": "h200_sxm", "totalGpus": 1, "gpusPerNode": 1},
    "workload": {"isl": 4000, "osl": 1000},
    "objective": {"ttftMs": 2000, "itlMs": 50},
}


@pytest.mark.timeout(300)
async def test_an_estimate_is_refined_and_cached(api: Api, kube: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/estimate"
    async with asyncio.timeout(240), api.stream(path, OBJECTIVE) as events:
        reported = await events.until("end")
    names = [event for event, _, _ in reported]
    assert names[0] == "estimate", "what memory alone says comes at once"
    assert "progress" in names
    first, last = (data for event, data, _ in (reported[0], reported[-2]))
    assert (first["source"], last["source"]) == ("naive", "aiconfigurator")
    for each in (first, last):
        Estimate.model_validate(each)
    assert last["selected"]["gpus"] == 1
    assert 0 < last["selected"]["itl"] <= 50
    assert len(last["pareto"]) > 1
    again = await api("POST", path, OBJECTIVE)
    assert (again.status, again.json["cached"], again.json["selected"]) == (200, True, last["selected"])
    # An estimate of a graph's GPUs needs the GPU type.
    graph = {"mode": "graph", "name": "qwen", "model": {"name": "Qwen/Qwen3-32B"}, "backend": "vllm"}
    serving = {"serving": {"replicas": {"worker": 2}}, "hardware": {"gpusPerReplica": 4}}
    unknown = await api("POST", path, {**graph, **serving})
    assert (unknown.status, unknown.json["errors"][0]["source"]) == (422, "spec.hardware")
    stranger = await account(kube, namespace, "stranger")
    assert (await api("POST", path, OBJECTIVE, token=stranger)).status == 403
    wrong = await api("POST", path, {**OBJECTIVE, "objective": {"ttftMs": -1}})
    assert [each["pointer"] for each in wrong.json["errors"]] == ["/objective/ttftMs"]
    model = {"name": "deepseek-ai/DeepSeek-V3"}
    too_few = {**OBJECTIVE, "model": model, "hardware": {"gpuSku": "l40s", "totalGpus": 1}}
    refused = await api("POST", path, too_few)
    assert refused.status == 422
    assert refused.json["errors"]
