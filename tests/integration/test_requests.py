"""Deployment requests on a real API server: profiled, applied, followed, failed, resumed. The tests play the profiling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dynamo_pod_builder.app import PodBuilderService
from dynamo_profiler.profiling.results import (
    DeploymentCandidate,
    ProfilingFailed,
    ProfilingRequest,
    ProfilingResult,
    Progress,
    Remark,
)
from dynamo_profiler.requests.controller import RequestController
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.request_graphs import marked
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    EVENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    ObjectKey,
)
from dynamo_shared.api.v1beta1.request import ProfilingPhase
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Service, ServiceContext
from dynamo_watcher.app import WatcherService

from .platform import eventually, gone, graph, platform, settings, until_state

HARDWARE = {"gpuSku": "h200_sxm", "totalGpus": 8, "numGpusPerNode": 8}


def request(namespace: str, name: str = "qwen", **spec: Any) -> KubeObject:
    return {
        **DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.type_meta,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"model": "Qwen/Qwen3-32B", "backend": "vllm", "hardware": HARDWARE, **spec},
    }


def candidate(asked: ProfilingRequest, name: str = "", *, meets_sla: bool = True) -> DeploymentCandidate:
    name = name or f"{asked.name}-dgd"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"planner-config-{asked.name}"}}
    return DeploymentCandidate(
        backend="vllm",
        serving="disagg",
        gpus=8,
        parallelism={"prefill": {"replicas": 2, "tp": 2}, "decode": {"replicas": 1, "tp": 4}},
        dgd=graph("", name),
        config_maps=({**config_map, "data": {"planner_config.json": "{}"}},),
        meets_sla=meets_sla,
        ttft_ms=429.5,
        itl_ms=15.84,
        tokens_per_second_per_gpu=697.8,
    )


class Played:
    """A profiler that ends when the test says so."""

    def __init__(self, *outcomes: ProfilingResult | ProfilingFailed) -> None:
        self.asked: list[ProfilingRequest] = []
        self.cancelled = 0
        self.go = asyncio.Event()
        self.outcomes = list(outcomes)

    async def run(self, asked: ProfilingRequest, progress: Progress) -> ProfilingResult:
        self.asked.append(asked)
        progress(ProfilingPhase.SWEEPING_PREFILL, "12 of 40 prefill engines")
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if not self.outcomes:
            best = candidate(asked)
            return ProfilingResult(selected=best, pareto=(best, candidate(asked, "other")))
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, ProfilingFailed):
            raise outcome
        return outcome


def no_result(_: ProfilingRequest, data: Mapping[str, str]) -> ProfilingResult:
    raise ProfilingFailed("GenerationFailed", f"unreadable: {data['final_config.yaml']}")


class Profiler:
    name = "profiler"

    def __init__(self, profiler: Played, read: Any = no_result) -> None:
        self.profiler, self.read = profiler, read

    async def run(self, context: ServiceContext) -> None:
        await RequestController(context, self.name, self.profiler.run, self.read).serve()


@asynccontextmanager
async def planning(
    plane: Any, nats: Any, namespace: str, profiler: Played, read: Any = no_result
) -> AsyncIterator[None]:
    """The platform of one namespace: requests of the tests before are still on their way out."""
    parts: list[Service] = [WatcherService(), PodBuilderService(), Profiler(profiler, read)]
    configured = settings(plane.kubeconfig, nats.url, PLATFORM__KUBERNETES__NAMESPACES=namespace)
    async with platform(configured, parts):
        yield


async def status_of(kube: KubeClient, namespace: str, name: str = "qwen") -> KubeObject:
    observed = await kube.get(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, name))
    status: KubeObject = observed.get("status", {})
    return status


async def until_phase(
    kube: KubeClient, namespace: str, phase: str, name: str = "qwen", within: float = 30
) -> KubeObject:
    observed: KubeObject = {}

    async def check() -> KubeObject | None:
        observed.clear()
        observed.update(await status_of(kube, namespace, name))
        return observed if observed.get("phase") == phase else None

    try:
        return await eventually(check, f"{name} is {phase}", within)
    except AssertionError as error:
        raise AssertionError(f"{error}; status: {observed}") from None


def conditions(status: KubeObject) -> dict[str, tuple[str, str]]:
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in status["conditions"]}


async def reasons(kube: KubeClient, namespace: str, name: str = "qwen") -> set[str]:
    events = await kube.list(EVENTS, namespace)
    return {event["reason"] for event in events if event["regarding"]["name"] == name}


async def create(kube: KubeClient, obj: KubeObject) -> KubeObject:
    return await kube.create(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, obj)


async def test_a_request_becomes_a_graph_that_serves_and_outlives_it(control_plane, nats_server, kube, namespace):
    profiler = Played()
    async with planning(control_plane, nats_server, namespace, profiler):
        await create(kube, request(namespace))
        await eventually(
            lambda: status_of(kube, namespace),
            "it reports its progress",
            where=lambda answer: answer.get("profilingPhase") == "SweepingPrefill",
        )
        status = await status_of(kube, namespace)
        assert conditions(status) == {
            "Validation": ("True", "Valid"),
            "Profiling": ("False", "SweepingPrefill"),
            "Succeeded": ("False", "Profiling"),
        }
        assert status["hardware"]["planned"] == {**HARDWARE, "vramMb": 143771.0}
        assert status["hardware"]["source"] == "spec"
        profiler.go.set()
        status = await until_phase(kube, namespace, "Deployed")
        assert conditions(status) == {
            "Validation": ("True", "Valid"),
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
        reported = {"Initialized", "SpecGenerated", "DeploymentCreated", "DeploymentReady"}
        await eventually(lambda: _has(kube, namespace, reported), "Events report it")
        config_map = await kube.get(CONFIG_MAPS, ObjectKey(namespace, "planner-config-qwen"))
        assert [owner["kind"] for owner in config_map["metadata"]["ownerReferences"]] == ["DynamoGraphDeployment"]
        await kube.delete(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, "qwen"))
        await eventually(
            lambda: gone(kube, DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, "qwen")), "the request is gone"
        )
        assert await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "qwen-dgd"))


async def _has(kube: KubeClient, namespace: str, reported: set[str]) -> bool:
    return reported <= await reasons(kube, namespace)


async def test_a_graph_waits_where_it_shall_not_be_applied(control_plane, nats_server, kube, namespace):
    profiler = Played()
    profiler.go.set()
    async with planning(control_plane, nats_server, namespace, profiler):
        await create(kube, request(namespace, autoApply=False))
        status = await until_phase(kube, namespace, "Ready")
        assert conditions(status)["Succeeded"] == ("True", "SpecGenerated")
        assert status["profilingResults"]["selectedConfig"]["kind"] == "DynamoGraphDeployment"
        assert await gone(kube, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "qwen-dgd"))
        await kube.merge_patch(
            DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, "qwen"), {"spec": {"model": "other"}}
        )

        async def reported() -> bool:
            now = await status_of(kube, namespace)
            return conditions(now)["Validation"] == ("False", "SpecChangeRejected")

        await eventually(reported, "a change without effect is reported")
        assert (await status_of(kube, namespace))["phase"] == "Ready"
    assert len(profiler.asked) == 1


async def test_what_an_applied_graph_reads_outlives_the_request(control_plane, nats_server, kube, namespace):
    profiler = Played()
    profiler.go.set()
    config_map = ObjectKey(namespace, "planner-config-qwen")

    async def owners() -> set[str]:
        metadata = (await kube.get(CONFIG_MAPS, config_map))["metadata"]
        return {owner["kind"] for owner in metadata["ownerReferences"]}

    async with planning(control_plane, nats_server, namespace, profiler):
        await create(kube, request(namespace, autoApply=False))
        status = await until_phase(kube, namespace, "Ready")
        assert await owners() == {"DynamoGraphDeploymentRequest"}
        made = await kube.get(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, "qwen"))
        applied = marked(made, status["profilingResults"]["selectedConfig"], owner=None)
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, applied)
        await eventually(
            owners,
            "the ConfigMap belongs to the graph, too",
            where=lambda answer: answer == {"DynamoGraphDeploymentRequest", "DynamoGraphDeployment"},
        )


async def test_a_graph_of_that_name_is_never_taken_over(control_plane, nats_server, kube, namespace):
    profiler = Played()
    profiler.go.set()
    standing = await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, "qwen-dgd"))
    # It was made for an earlier request of the name, and outlived that with what it reads.
    read = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "planner-config-qwen"}, "data": {"kept": ""}}
    earlier = {"metadata": {"name": "qwen", "namespace": namespace, "uid": "earlier"}}
    await kube.create(CONFIG_MAPS, marked(earlier, read, owner=None))
    async with planning(control_plane, nats_server, namespace, profiler):
        await create(kube, request(namespace))
        status = await until_phase(kube, namespace, "Failed")
        assert conditions(status)["DeploymentReady"] == ("False", "DeploymentRejected")
        assert "was not made for this request" in status["conditions"][-1]["message"]
        observed = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "qwen-dgd"))
        assert observed["metadata"]["uid"] == standing["metadata"]["uid"]
        assert labels.REQUEST_NAME not in observed["metadata"].get("labels", {})
        assert (await kube.get(CONFIG_MAPS, ObjectKey(namespace, "planner-config-qwen")))["data"] == {"kept": ""}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"modelCache": {"pvcName": "absent"}}, "there is no PersistentVolumeClaim absent"),
        ({"hardware": {"gpuSku": "mi300"}}, "no node has mi300: the cluster has h100_sxm (2 nodes of 8)"),
        ({"workload": {"concurrency": 5, "requestRate": 5}}, "spec.workload: has concurrency and requestRate"),
        ({"features": {"planner": {"mode": "both"}}}, "spec.features.planner.mode: 'both' is not allowed"),
    ],
)
async def test_what_cannot_be_profiled_says_what_to_do(  # noqa: PLR0917 - fixtures and parameters
    control_plane, nats_server, kube, namespace, spec, says
):
    async with planning(control_plane, nats_server, namespace, Played()):
        await create(kube, request(namespace, **spec))
        status = await until_phase(kube, namespace, "Failed")
        assert conditions(status)["Validation"] == ("False", "ValidationFailed")
        assert says in status["conditions"][0]["message"]
        await eventually(lambda: _has(kube, namespace, {"ValidationFailed"}), "an Event report it")


async def test_hardware_that_is_not_given_is_read_from_nodes(control_plane, nats_server, kube, namespace):
    profiler = Played()
    async with planning(control_plane, nats_server, namespace, profiler):
        await kube.create(
            PERSISTENT_VOLUME_CLAIMS,
            {
                **PERSISTENT_VOLUME_CLAIMS.type_meta,
                "metadata": {"name": "models", "namespace": namespace},
                "spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
            },
        )
        await create(kube, request(namespace, hardware=None, modelCache={"pvcName": "models"}))
        status = await until_phase(kube, namespace, "Profiling")
        result = status["hardware"]
        assert result["source"] == "nodeLabels"
        assert result["planned"] == {"gpuSku": "h100_sxm", "vramMb": 81559, "numGpusPerNode": 8, "totalGpus": 16}
        assert [kind["gpuSku"] for kind in result["found"]] == ["h100_sxm"]
        await eventually(lambda: _asked(profiler), "profiling begins")
        hardware = profiler.asked[0].spec.hardware
        assert hardware is not None
        assert (hardware.gpu_sku, hardware.total_gpus) == ("h100_sxm", 16)


async def _asked(profiler: Played) -> bool:
    return bool(profiler.asked)


async def test_failed_profiling_says_at_which_step_and_why(control_plane, nats_server, kube, namespace):
    profiler = Played(ProfilingFailed("", "no engine fits into the memory of a t4"))
    profiler.go.set()
    async with planning(control_plane, nats_server, namespace, profiler):
        await create(kube, request(namespace))
        status = await until_phase(kube, namespace, "Failed")
        reported = conditions(status)
        assert reported["Profiling"][1] == reported["Succeeded"][1]
        assert reported["Profiling"][1].endswith("Failed")
        assert "no engine fits" in status["conditions"][-1]["message"]


async def test_an_objective_that_nothing_meets_is_marked_and_offered(control_plane, nats_server, kube, namespace):
    asked = ProfilingRequest(name="qwen", namespace=namespace, spec=Any)  # type: ignore[arg-type]
    closest = candidate(asked, meets_sla=False)
    remark = Remark(reason="ObjectiveNotMet", message="TTFT 429.5 ms is the least; 5 ms was asked for")
    profiler = Played(ProfilingResult(selected=closest, pareto=(closest,), remarks=(remark,)))
    profiler.go.set()
    async with planning(control_plane, nats_server, namespace, profiler):
        await create(kube, request(namespace, autoApply=False))
        status = await until_phase(kube, namespace, "Ready")
        assert conditions(status)["ObjectiveMet"] == ("False", "ObjectiveNotMet")
        assert status["profilingResults"]["selectedFigures"]["meetsSLA"] is False
        await eventually(lambda: _has(kube, namespace, {"ObjectiveNotMet"}), "an Event report it")


async def test_profiling_goes_on_after_a_restart_and_stops_with_its_request(
    control_plane, nats_server, kube, namespace
):
    first, second = Played(), Played()
    async with planning(control_plane, nats_server, namespace, first):
        await create(kube, request(namespace))
        await until_phase(kube, namespace, "Profiling")
        await eventually(lambda: _asked(first), "profiling begins")
    assert (len(first.asked), first.cancelled) == (1, 1)
    async with planning(control_plane, nats_server, namespace, second):
        await eventually(lambda: _asked(second), "profiling begins again")
        await kube.delete(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, "qwen"))
        await eventually(lambda: second.cancelled == 1, "the work stops with the request")
    assert len(second.asked) == 1
    assert await gone(kube, JOBS, ObjectKey(namespace, "profile-qwen"))
