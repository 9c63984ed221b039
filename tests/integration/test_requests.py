"""Deployment requests on a real API server: all phases, and restarts. The tests act as the profiler."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from dynamo_pod_builder.app import PodBuilderService
from dynamo_profiler.profiling.results import (
    DeploymentCandidate,
    ProfilingFailed,
    ProfilingRequest,
    ProfilingResult,
    Progress,
)
from dynamo_profiler.requests.controller import RequestController
from dynamo_shared.aio import Offload
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    JOBS,
    ObjectKey,
)
from dynamo_shared.api.v1beta1.request import Figures, ProfilingPhase
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Service, ServiceContext
from dynamo_watcher.app import WatcherService

from tests.building.objects import object_of

from .platform import eventually, gone, graph, platform, settings, until_event, until_state, until_status

HARDWARE = {"gpuSku": "h200_sxm", "totalGpus": 8, "numGpusPerNode": 8}


def request(namespace: str, name: str = "qwen", **spec: Any) -> KubeObject:
    spec = {"model": "Qwen/Qwen3-32B", "backend": "vllm", "hardware": HARDWARE, **spec}
    return object_of(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, name, namespace, spec=spec)


def candidate(asked: ProfilingRequest, name: str = "") -> DeploymentCandidate:
    name = name or f"{asked.name}-dgd"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"planner-config-{asked.name}"}}
    return DeploymentCandidate(
        figures=Figures(
            backend="vllm",
            serving="disagg",
            gpus=8,
            meets_sla=True,
            ttft=429.5,
            itl=15.84,
            tokens_per_second_per_gpu=697.8,
        ),
        parallelism={"prefill": {"replicas": 2, "tp": 2}, "decode": {"replicas": 1, "tp": 4}},
        dgd=graph("", name),
        config_maps=({**config_map, "data": {"planner_config.json": "{}"}},),
    )


class ControlledProfiler:
    """A profiler that finishes when the test says so."""

    def __init__(self) -> None:
        self.asked: list[ProfilingRequest] = []
        self.cancelled = 0
        self.go = asyncio.Event()

    async def run(self, asked: ProfilingRequest, progress: Progress) -> ProfilingResult:
        self.asked.append(asked)
        progress(ProfilingPhase.SWEEPING_PREFILL, "12 of 40 prefill engines")
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        best = candidate(asked)
        return ProfilingResult(selected=best, pareto=(best, candidate(asked, "other")))


def no_result(_: ProfilingRequest, data: Mapping[str, str]) -> ProfilingResult:
    raise ProfilingFailed("GenerationFailed", f"unreadable: {data['final_config.yaml']}")


class Profiler:
    name = "profiler"

    def __init__(self, profiler: ControlledProfiler, read: Any = no_result) -> None:
        self.profiler, self.read, self.large = profiler, read, Offload(above=0, at_once=1)

    async def run(self, context: ServiceContext) -> None:
        await RequestController(
            context, self.name, self.profiler.run, self.read, lambda _: None, large=self.large
        ).serve()


@asynccontextmanager
async def planning(
    plane: Any, nats: Any, namespace: str, profiler: ControlledProfiler, read: Any = no_result
) -> AsyncIterator[None]:
    """The platform for one namespace, because requests of earlier tests may still be in deletion."""
    parts: list[Service] = [WatcherService(), PodBuilderService(), Profiler(profiler, read)]
    configured = settings(plane.kubeconfig, nats.url, PLATFORM__KUBERNETES__NAMESPACES=namespace)
    async with platform(configured, parts):
        yield


async def status_of(kube: KubeClient, namespace: str, name: str = "qwen") -> KubeObject:
    observed = await kube.get(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, name))
    status: KubeObject = observed.get("status", {})
    return status


async def until_phase(kube: KubeClient, namespace: str, phase: str, name: str = "qwen") -> KubeObject:
    requests, key = DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, name)
    return await until_status(kube, requests, key, phase, lambda status: status.get("phase") == phase)


def conditions(status: KubeObject) -> dict[str, tuple[str, str]]:
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in status["conditions"]}


async def create(kube: KubeClient, obj: KubeObject) -> KubeObject:
    return await kube.create(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, obj)


async def test_a_request_becomes_a_graph_that_serves_and_outlives_it(control_plane, nats_server, kube, namespace):
    profiler = ControlledProfiler()
    async with planning(control_plane, nats_server, namespace, profiler):
        await create(kube, request(namespace))
        status = await eventually(
            lambda: status_of(kube, namespace),
            "it reports its progress",
            where=lambda answer: answer.get("profilingPhase") == "SweepingPrefill",
        )
        assert conditions(status) == {
            "Validation": ("True", "ValidationPassed"),
            "Profiling": ("False", "SweepingPrefill"),
            "Succeeded": ("False", "Profiling"),
        }
        assert status["hardware"]["planned"] == {**HARDWARE, "vramMb": 143771.0}
        assert status["hardware"]["source"] == "spec"
        profiler.go.set()
        status = await until_phase(kube, namespace, "Deployed")
        assert conditions(status) == {
            "Validation": ("True", "ValidationPassed"),
            "Profiling": ("True", "ProfilingCompleted"),
            "SpecGenerated": ("True", "SpecGenerated"),
            "ObjectiveMet": ("True", "ObjectiveMet"),
            "DeploymentReady": ("True", "DeploymentReady"),
            "Succeeded": ("True", "Deployed"),
        }
        assert status["dgdName"] == "qwen-dgd"
        assert status["deploymentInfo"] == {"replicas": 3, "availableReplicas": 3}
        results = status["profilingResults"]
        assert results["selectedFigures"]["tokensPerSecondPerGPU"] == 697.8
        assert [point["config"]["metadata"]["name"] for point in results["pareto"]] == ["qwen-dgd", "other"]
        made = await until_state(kube, ObjectKey(namespace, "qwen-dgd"), "successful")
        assert made["metadata"]["labels"][labels.REQUEST_NAME] == "qwen"
        assert "ownerReferences" not in made["metadata"]
        for reason in ("Initialized", "SpecGenerated", "DeploymentCreated", "DeploymentReady"):
            await until_event(kube, namespace, reason, "qwen")
        config_map = await kube.get(CONFIG_MAPS, ObjectKey(namespace, "planner-config-qwen"))
        assert [owner["kind"] for owner in config_map["metadata"]["ownerReferences"]] == ["DynamoGraphDeployment"]
        await kube.delete(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, "qwen"))
        await eventually(
            lambda: gone(kube, DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, "qwen")), "the request is gone"
        )
        assert await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "qwen-dgd"))


async def test_profiling_restarts_with_the_service_and_is_cancelled_with_its_request(
    control_plane, nats_server, kube, namespace
):
    first, second = ControlledProfiler(), ControlledProfiler()
    async with planning(control_plane, nats_server, namespace, first):
        await create(kube, request(namespace))
        await until_phase(kube, namespace, "Profiling")
        await eventually(lambda: first.asked, "profiling begins")
    assert (len(first.asked), first.cancelled) == (1, 1)
    async with planning(control_plane, nats_server, namespace, second):
        await eventually(lambda: second.asked, "profiling begins again")
        await kube.delete(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, "qwen"))
        await eventually(lambda: second.cancelled == 1, "the work stops with the request")
    assert len(second.asked) == 1
    assert await gone(kube, JOBS, ObjectKey(namespace, "profile-qwen"))
