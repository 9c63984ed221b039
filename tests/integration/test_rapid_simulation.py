"""Rapid profiling with the real AI Configurator, offline: figures of its tables, and requests of many kinds."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_planner.core.profile_arrays import from_json
from dynamo_profiler.profiling.rapid import RapidProfiler
from dynamo_profiler.profiling.results import ProfilingRequest, ProfilingResult
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.api.manifest import load_manifest
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec, ProfilingPhase
from dynamo_shared.runtime.settings.planner import Planner

from tests.building.tables import rows

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]

FRONTEND = "nvcr.io/nvidia/ai-dynamo/dynamo-frontend:latest"
QWEN = {"model": "Qwen/Qwen3-32B", "backend": "trtllm", "image": FRONTEND}
H200_8 = {"gpuSku": "h200_sxm", "totalGpus": 8, "numGpusPerNode": 8}
H200_16 = {**H200_8, "totalGpus": 16}
#: The minimum for separate prefill and decode: a sweep of it takes a fraction of the time for a whole node.
H200_2 = {"gpuSku": "h200_sxm", "totalGpus": 2, "numGpusPerNode": 2}
PLANNED = {
    "optimization_target": "sla",
    "pre_deployment_sweeping_mode": "rapid",
    "enable_throughput_scaling": True,
    "enable_load_scaling": False,
    "mode": "disagg",
    "backend": "trtllm",
}


@pytest.fixture(scope="module")
async def profiler() -> AsyncIterator[RapidProfiler]:
    # One process reads each table once; `test_simulation_pool` covers several processes. Its priority stays normal:
    # other tests would delay these for minutes.
    rapid = {"processes": 1, "memory_mib": 3072, "niceness": 0}
    settings = Planner.model_validate({"rapid": rapid})
    async with RapidProfiler(settings, "1.2.0") as made:
        yield made


async def profile(profiler: RapidProfiler, name: str = "case", **spec: Any) -> ProfilingResult:
    phases: list[ProfilingPhase] = []
    request = ProfilingRequest(
        name=name, namespace="default", spec=DynamoGraphDeploymentRequestSpec.model_validate(spec)
    )
    result = await profiler.run(request, lambda phase, _: phases.append(phase))
    order = list(ProfilingPhase)
    assert phases == sorted(phases, key=order.index)
    for candidate in result.pareto:
        load_manifest(candidate.dgd)
        assert 0 < (candidate.figures.gpus or 0) <= spec["hardware"]["totalGpus"]
    return result


def reasons(result: ProfilingResult) -> list[str]:
    return [remark.reason for remark in result.remarks]


async def test_figures_equal_those_of_the_tables(profiler: RapidProfiler):
    result = await profile(profiler, **{**QWEN, "backend": "vllm"}, hardware=H200_16, sla={"ttft": 600, "itl": 16.67})
    selected = result.selected
    assert selected.figures.tokens_per_second_per_gpu == pytest.approx(697.8, rel=0.02)
    assert selected.figures.ttft == pytest.approx(429.5, rel=0.02)
    assert selected.figures.itl == pytest.approx(15.84, rel=0.02)
    assert {role: (e["replicas"], e["tp"]) for role, e in selected.parallelism.items()} == {
        "prefill": (4, 2),
        "decode": (1, 8),
    }
    assert selected.figures.meets_sla
    assert reasons(result) == []
    best = [point for point in result.pareto if point.figures.serving == "agg" and point.figures.meets_sla]
    assert max(point.figures.tokens_per_second_per_gpu or 0 for point in best) <= 646.0 * 1.02


@rows(
    "spec, serving, remarks",
    {
        "no load": ({"hardware": H200_8, "sla": {"itl": 50.0}}, None, []),
        "rate": ({"hardware": H200_16, "workload": {"requestRate": 1.0}, "sla": {"itl": 50.0}}, None, []),
        "e2e latency": (
            {
                "hardware": H200_16,
                "workload": {"requestRate": 1.0},
                "sla": {"ttft": None, "itl": None, "e2eLatency": 35000.0},
            },
            None,
            [],
        ),
        "planner": ({"hardware": H200_8, "sla": {"itl": 50.0}, "features": {"planner": PLANNED}}, "disagg", []),
        "beyond all engines": ({"hardware": H200_2, "sla": {"ttft": 5.0, "itl": 1.0}}, None, ["ObjectiveNotMet"]),
        "beyond all GPUs": ({"hardware": H200_2, "workload": {"requestRate": 500.0}}, None, ["LoadNotServed"]),
    },
)
async def test_requests_for_a_known_model(
    profiler: RapidProfiler, spec: dict[str, Any], serving: str | None, remarks: list[str]
):
    result = await profile(profiler, **QWEN, **spec)
    assert result.source == "aiconfigurator"
    assert result.selected.figures.backend == "trtllm"
    assert reasons(result) == remarks
    assert result.selected.figures.meets_sla == (not remarks)
    if serving:
        assert result.selected.figures.serving == serving
    if "workload" in spec and not remarks:
        assert (result.selected.figures.requests_per_second or 0) >= 1.0
        assert 0 < (result.selected.figures.gpus or 0) < 16
    text = json.dumps(result.selected.dgd)
    assert "tensorrtllm-runtime:latest" in text


async def test_a_planner_starts_with_a_profile(profiler: RapidProfiler):
    features = {"planner": PLANNED, "mocker": {"enabled": True}}
    result = await profile(profiler, **QWEN, hardware=H200_8, sla={"itl": 50.0}, features=features)
    config, data = (each["data"] for each in result.selected.config_maps)
    planner = PlannerConfig.model_validate_json(config["planner_config.json"])
    assert not list(planner.problems())
    assert planner.aic_interpolation is not None
    prefill, decode = (from_json(data[f"{role}_raw_data.json"], role) for role in ("prefill", "decode"))
    known = prefill.joined(decode).complete()
    times = [point.ttft for point in known.prefill]
    assert times == sorted(times)
    assert len(known.decode) >= 30
    assert (known.max_kv_tokens or 0) > 100_000
    assert "dynamo.mocker" in json.dumps(result.selected.dgd)
    assert "nvidia.com/gpu" not in json.dumps(result.selected.dgd)


ONE_GPU = {"gpuSku": "h200_sxm", "totalGpus": 1, "numGpusPerNode": 1}


async def test_request_rates_and_token_rates_agree(profiler: RapidProfiler):
    # A request rate so low that it needs more than two decimals.
    workload = {"isl": 10, "osl": 30_000}
    result = await profile(profiler, **{**QWEN, "backend": "vllm"}, hardware=ONE_GPU, workload=workload)
    for point in result.pareto:
        tokens = (point.figures.tokens_per_second_per_gpu or 0) * (point.figures.gpus or 0)
        assert point.figures.tokens_per_second == pytest.approx(tokens)
        assert point.figures.requests_per_second == pytest.approx(tokens / workload["osl"])


async def test_engines_fit_into_smaller_gpu_variants(profiler: RapidProfiler):
    hardware = {"gpuSku": "a100_sxm", "totalGpus": 4, "numGpusPerNode": 4, "vramMb": 40_960}
    sla = {"ttft": 5000, "itl": 100}
    result = await profile(profiler, **{**QWEN, "backend": "vllm"}, hardware=hardware, sla=sla)
    # 61 GiB of weights do not fit into any single one.
    assert all(sizes["tp"] > 1 for point in result.pareto for sizes in point.parallelism.values())
