"""`make e2e-requests`: every sample spec of the planning data becomes a request, with the outcome in its comment.

AI Configurator is the real one, which takes a minute or two; `make test` covers the same kinds without the service
(test_rapid_simulation.py). For thorough requests only the Job is checked, because its pod would need GPUs.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from dynamo_pod_builder.app import PodBuilderService
from dynamo_profiler.app import ProfilerService
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_watcher.app import WatcherService

from .platform import platform, settings, until_status

SAMPLES = Path(__file__).parents[2] / ".." / "shared" / "planning" / "dgdr"
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not SAMPLES.is_dir(), reason="the planning data is not next to this project"),
]


def components(graph: KubeObject) -> dict[str, KubeObject]:
    return {each["name"]: each for each in graph["spec"]["components"]}


def figures(status: KubeObject) -> KubeObject:
    return dict(status["profilingResults"]["selectedFigures"])


def reasons(status: KubeObject) -> set[str]:
    return {each["reason"] for each in status["conditions"]}


def simulated(status: KubeObject) -> KubeObject:
    """The generated graph of a simulated request whose objective a graph meets."""
    assert status["phase"] == "Ready", status["conditions"]
    assert status["profilingResults"]["source"] == "aiconfigurator"
    assert figures(status)["meetsSLA"] is True
    assert status["profilingResults"]["pareto"][0]["config"] == status["profilingResults"]["selectedConfig"]
    return dict(status["profilingResults"]["selectedConfig"])


def no_load(status: KubeObject) -> None:
    graph = simulated(status)
    assert graph["spec"]["backendFramework"] == "trtllm"
    assert figures(status)["itl"] <= 50


def rate(status: KubeObject) -> None:
    """The fewest GPUs that serve the rate."""
    simulated(status)
    assert figures(status)["requestsPerSecond"] >= 5
    assert figures(status)["gpus"] < 64


def volume(status: KubeObject) -> None:
    rate(status)
    for name, each in components(status["profilingResults"]["selectedConfig"]).items():
        text = yaml.safe_dump(each)
        assert "claimName: model-cache" in text, name
    assert "/model/Qwen3-32B" in text


def whole_answer(status: KubeObject) -> None:
    rate(status)
    assert figures(status)["requestLatency"] <= 35000


def two_loads(status: KubeObject) -> None:
    assert status["phase"] == "Failed"
    (reported,) = (each for each in status["conditions"] if each["type"] == "Validation")
    assert (reported["status"], reported["reason"]) == ("False", "ValidationFailed")
    assert "concurrency" in reported["message"]
    assert "requestRate" in reported["message"]


def planned(status: KubeObject) -> None:
    graph = simulated(status)
    assert "nvidia.com/planner-config" in graph["metadata"]["annotations"]
    assert {each.get("type") for each in components(graph).values()} >= {"prefill", "decode"}


def mocked(status: KubeObject) -> None:
    planned(status)
    text = yaml.safe_dump(status["profilingResults"]["selectedConfig"])
    assert "dynamo.mocker" in text
    assert "nvidia.com/gpu" not in text


def naive(status: KubeObject) -> None:
    assert status["phase"] == "Ready", status["conditions"]
    assert status["profilingResults"]["source"] == "naive"
    assert "NaiveConfiguration" in reasons(status)


def naive_planned(status: KubeObject) -> None:
    naive(status)
    assert "nvidia.com/planner-config" in status["profilingResults"]["selectedConfig"]["metadata"]["annotations"]


def measured(status: KubeObject) -> None:
    assert status["phase"] == "Profiling", status["conditions"]
    assert status["profilingJobName"]


def no_candidates(status: KubeObject) -> None:
    """Known before any measurement, so no Job starts."""
    assert status["phase"] == "Failed"
    assert "NoCandidates" in reasons(status)
    assert "profilingJobName" not in status


OUTCOMES: dict[str, Callable[[KubeObject], None]] = {
    "11_auto_rapid_no_planner_no_load": simulated,  # type: ignore[dict-item]
    "1_rapid_supported_no_planner_no_load": no_load,
    "2_rapid_supported_no_planner_with_load": rate,
    "2b_rapid_supported_pvc_no_planner_with_load": volume,
    "2c_rapid_supported_e2e_latency": whole_answer,
    "2d_rapid_both_concurrency_and_rate_error": two_loads,
    "3_rapid_supported_planner_rapid_sweep": planned,
    "3b_rapid_supported_planner_rapid_sweep_mocker": mocked,
    "4_rapid_unsupported_no_planner": naive,
    "5_rapid_unsupported_planner": naive_planned,
    "6_thorough_no_planner_with_load": measured,
    "7_thorough_planner_rapid_sweep": measured,
    "7b_thorough_planner_thorough_sweep": measured,
    "8_thorough_empty_candidates": no_candidates,
    "9a_thorough_dsr1_sglang_overrides": measured,
}


async def test_every_sample_has_the_outcome_in_its_comment(control_plane, nats_server, kube, namespace, capsys):
    samples = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(SAMPLES.glob("*.yaml"))}
    assert samples.keys() == OUTCOMES.keys()
    configured = settings(control_plane.kubeconfig, nats_server.url, PLATFORM__KUBERNETES__NAMESPACES=namespace)
    async with platform(configured, [WatcherService(), PodBuilderService(), ProfilerService()]):
        await kube.create(PERSISTENT_VOLUME_CLAIMS, claim(namespace))
        for stem, spec in samples.items():
            status = await outcome(kube, namespace, stem, {**spec, "autoApply": False})
            with capsys.disabled():
                print(f"{stem}: {summary(status)}")
            OUTCOMES[stem](status)
            if graph := status.get("profilingResults", {}).get("selectedConfig"):
                graph["metadata"]["namespace"] = namespace
                await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph, dry_run=True)
            elif job := status.get("profilingJobName"):
                await job_is_right(kube, ObjectKey(namespace, job), spec)


async def test_an_objective_becomes_a_graph_soon_and_at_once_when_repeated(
    control_plane, nats_server, kube, namespace, capsys
):
    """Figures of AI Configurator's own tables (planner.md, section e); times are printed, not asserted."""
    spec = {
        "model": "Qwen/Qwen3-32B",
        "backend": "vllm",
        "hardware": {"gpuSku": "h200_sxm", "totalGpus": 16, "numGpusPerNode": 8},
        "workload": {"isl": 4000, "osl": 1000},
        "sla": {"ttft": 600.0, "itl": 16.67},
        "autoApply": False,
    }
    configured = settings(control_plane.kubeconfig, nats_server.url, PLATFORM__KUBERNETES__NAMESPACES=namespace)
    async with platform(configured, [WatcherService(), PodBuilderService(), ProfilerService()]):
        for stem in ("objective_first", "objective_again"):
            began = time.monotonic()
            status = await outcome(kube, namespace, stem.replace("_", "-"), spec)
            with capsys.disabled():
                print(f"{stem}: {time.monotonic() - began:.1f} s, {summary(status)}")
            simulated(status)
            assert figures(status)["tokensPerSecondPerGPU"] == pytest.approx(697.8, rel=0.02)


async def outcome(kube: KubeClient, namespace: str, stem: str, spec: KubeObject) -> KubeObject:
    """The final status of a request; for a thorough one, the status once its Job exists."""
    name = "case-" + stem.partition("_")[0]
    metadata = {"name": name, "namespace": namespace}
    desired = {**DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.type_meta, "metadata": metadata, "spec": spec}
    await kube.create(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, desired)

    def stays(status: KubeObject) -> bool:
        return status.get("phase") in {"Ready", "Failed", "Deployed"} or "profilingJobName" in status

    requests, key = DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(namespace, name)
    return await until_status(kube, requests, key, f"the outcome of {stem}", stays, within=240)


async def job_is_right(kube: KubeClient, key: ObjectKey, spec: KubeObject) -> None:
    """The Job runs the request's image with the whole request, overrides included."""
    job = await kube.get(JOBS, key)
    pod = job["spec"]["template"]["spec"]
    assert spec["image"] in [each["image"] for each in pod["containers"]]
    text = yaml.safe_dump(job, width=10**6)
    assert spec["model"] in text
    if "overrides" in spec:
        assert "--prefill-round-robin-balance" in text


def claim(namespace: str) -> KubeObject:
    metadata = {"name": "model-cache", "namespace": namespace}
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return {**PERSISTENT_VOLUME_CLAIMS.type_meta, "metadata": metadata, "spec": spec}


def summary(status: KubeObject) -> str:
    results = status.get("profilingResults", {})
    known = results.get("selectedFigures", {})
    said = " ".join(
        f"{name}={known[name]}" for name in ("backend", "serving", "gpus", "ttft", "itl", "meetsSLA") if name in known
    )
    reported = sorted(reasons(status))
    return f"{status['phase']} {results.get('source', '')} {said} {status.get('profilingJobName', '')} {reported}"
