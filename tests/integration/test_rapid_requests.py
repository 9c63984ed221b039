"""Requests that the planner service itself profiles with AI Configurator, up to graphs that serve on KWOK nodes."""

from typing import Any

import aiohttp
import pytest
from dynamo_pod_builder.app import PodBuilderService
from dynamo_profiler.app import ProfilerService
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Service
from dynamo_watcher.app import WatcherService
from prometheus_client.parser import text_string_to_metric_families

from .platform import platform, settings, until_status

#: A simulation takes half a minute of CPU time, longer on a busy machine; `make e2e-requests` covers more requests.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

SWEEPS = "dynamo_planner_profiling_sweeps_total"


def request(namespace: str, name: str, **spec: Any) -> KubeObject:
    hardware = {"gpuSku": "h200_sxm", "vramMb": 143771, "totalGpus": 8, "numGpusPerNode": 8}
    return {
        **DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.type_meta,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"model": "Qwen/Qwen3-32B", "backend": "vllm", "hardware": hardware, "sla": {"itl": 50}, **spec},
    }


async def until(kube: KubeClient, namespace: str, name: str, *phases: str) -> KubeObject:
    def ended(status: KubeObject) -> bool:
        return status.get("phase") in (*phases, "Failed")

    requests, key = DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, name)
    status = await until_status(kube, requests, key, " or ".join(phases), ended, within=600)
    assert status["phase"] in phases, status["conditions"]
    return status


async def test_a_request_becomes_a_serving_graph(control_plane, nats_server, kube, namespace):
    parts: list[Service] = [WatcherService(), PodBuilderService(), ProfilerService()]
    limits = {"PLATFORM__KUBERNETES__NAMESPACES": namespace, "PLATFORM__PLANNER__RAPID__TIME_LIMIT": "600s"}
    configured = settings(control_plane.kubeconfig, nats_server.url, **limits)
    async with platform(configured, parts) as up:
        planner = {"planner": {"optimization_target": "sla", "mode": "disagg", "max_gpu_budget": 8}}
        await kube.create(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, request(namespace, "planned", features=planner))
        status = await until(kube, namespace, "planned", "Deployed")
        assert status["profilingResults"]["source"] == "aiconfigurator"
        assert status["profilingResults"]["selectedFigures"]["meetsSLA"] is True
        graph = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "planned-dgd"))
        config = graph["metadata"]["annotations"]["nvidia.com/planner-config"]
        for name in (config, config.replace("planner-config", "planner-profile-data")):
            observed = await kube.get(CONFIG_MAPS, ObjectKey(namespace, name))
            assert observed["metadata"]["ownerReferences"][0]["name"] == "planned-dgd"

        # The number of GPUs comes from the nodes.
        objective = {"hardware": {"gpuSku": "h100_sxm"}, "sla": {"ttft": 2000, "itl": 30}, "autoApply": False}
        await kube.create(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, request(namespace, "first", **objective))
        status = await until(kube, namespace, "first", "Ready")
        assert condition(status, "ObjectiveMet") == ("True", "ObjectiveMet")
        figures = status["profilingResults"]["selectedFigures"]
        assert figures["meetsSLA"] is True
        assert figures["itl"] <= 30
        assert figures["gpus"] <= 16
        pareto = status["profilingResults"]["pareto"]
        assert len(pareto) > 1
        assert pareto[0]["config"] == status["profilingResults"]["selectedConfig"]
        assert pareto[0]["figures"]["tokensPerSecondPerGPU"] > 0

        simulated, remembered = [await sweeps(up.metrics_port, cached=cached) for cached in ("false", "true")]
        # The router and arguments of an override become part of the graph, and do not change the figures.
        main = {"name": "main", "$patch": {"args": "append"}, "args": ["--router-temperature", "0.5"]}
        frontend = {"name": "Frontend", "podTemplate": {"spec": {"containers": [main]}}}
        changes = {
            "features": {"kvRouter": {"enabled": True}},
            "overrides": {"dgd": {"apiVersion": "nvidia.com/v1beta1", "spec": {"components": [frontend]}}},
        }
        await kube.create(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, request(namespace, "again", **objective, **changes))
        again = await until(kube, namespace, "again", "Ready")
        assert again["profilingResults"]["selectedFigures"] == figures
        container = again["profilingResults"]["selectedConfig"]["spec"]["components"][0]["podTemplate"]["spec"][
            "containers"
        ][0]
        assert container["args"] == ["-m", "dynamo.frontend", "--router-temperature", "0.5"]
        assert {"name": "DYN_ROUTER_MODE", "value": "kv"} in container["env"]
        assert "$patch" not in container
        assert await sweeps(up.metrics_port, cached="false") == simulated > 0
        assert await sweeps(up.metrics_port, cached="true") > remembered


def condition(status: KubeObject, kind: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    return next((each["status"], each["reason"]) for each in status["conditions"] if each["type"] == kind)


async def sweeps(port: int, cached: str) -> float:
    """The service's counter of simulations: computed or cached ones."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        text = await answer.text()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == SWEEPS and sample.labels["cached"] == cached
    )
