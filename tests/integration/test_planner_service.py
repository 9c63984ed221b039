"""The planner service as it is: rapid profiling by real worker processes, from a manifest to a graph that serves."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_planner.app import PlannerService
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api.resources import JOBS, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import NotFound
from dynamo_shared.runtime import Service
from dynamo_watcher.app import WatcherService

from .platform import platform, settings
from .test_requests import conditions, create, request, until_phase


async def test_a_model_and_an_objective_become_a_graph_that_serves(control_plane, nats_server, kube, namespace):
    parts: list[Service] = [WatcherService(), PodBuilderService(), PlannerService()]
    configured = settings(control_plane.kubeconfig, nats_server.url, PLATFORM__KUBERNETES__NAMESPACES=namespace)
    async with platform(configured, parts):
        objective: dict[str, Any] = {"ttft": 2000, "itl": 30}
        await create(kube, request(namespace, hardware={"gpuSku": "h100_sxm"}, sla=objective))
        status = await until_phase(kube, namespace, "Deployed", within=150)
        await nothing_to_measure(kube, namespace)
    assert conditions(status)["ObjectiveMet"] == ("True", "ObjectiveMet")
    results = status["profilingResults"]
    assert results["source"] == "aiconfigurator"
    figures = results["selectedFigures"]
    assert figures["meetsSLA"] is True
    assert figures["itl"] <= 30
    assert figures["gpus"] <= 16
    assert results["pareto"][0]["figures"]["tokensPerSecondPerGPU"] > 0


async def nothing_to_measure(kube: KubeClient, namespace: str) -> None:
    """A thorough request whose model fits no engine ends before a Job begins."""
    hopeless = request(namespace, searchStrategy="thorough", backend="sglang", model="deepseek-ai/DeepSeek-R1")
    hopeless["metadata"]["name"] = "hopeless"
    hopeless["spec"]["hardware"] = {"gpuSku": "l40s", "totalGpus": 1, "numGpusPerNode": 1}
    await create(kube, hopeless)
    status = await until_phase(kube, namespace, "Failed", "hopeless")
    assert conditions(status)["Profiling"] == ("False", "NoCandidates")
    assert "profilingJobName" not in status
    with pytest.raises(NotFound):
        await kube.get(JOBS, ObjectKey(namespace, "profile-hopeless"))
