"""Rapid profiling from request to result, with a simulator that needs no AI Configurator."""

import asyncio
import json
from typing import Any

import pytest
from dynamo_profiler.metrics import ProfilingMetrics
from dynamo_profiler.profiling.rapid import LARGE_REQUEST, RapidProfiler
from dynamo_profiler.profiling.results import ProfilingFailed, ProfilingResult
from dynamo_shared.api.v1beta1.request import ProfilingPhase
from prometheus_client import CollectorRegistry

from tests.building.recorded_offload import RecordedOffload
from tests.unit.profiler.profiling.profiling_world import FAKE, request, settings


class Steps:
    """Phases that were reported."""

    def __init__(self) -> None:
        self.phases: list[ProfilingPhase] = []
        self.heard = asyncio.Event()

    def __call__(self, phase: ProfilingPhase, sentence: str) -> None:
        self.phases.append(phase)
        if "process" in sentence:
            self.heard.set()


def profiler(**rapid: Any) -> RapidProfiler:
    return RapidProfiler(settings(**rapid), "1.2.0", child=FAKE, metrics=ProfilingMetrics(CollectorRegistry()))


def computed(rapid: RapidProfiler) -> float:
    """Sweeps and curves that were not remembered."""
    metrics = rapid.simulations._metrics
    assert metrics is not None
    return metrics.sweeps.labels("found", "false")._value.get()


async def profile(**spec: Any) -> ProfilingResult:
    async with profiler() as rapid:
        return await rapid.run(request(**spec), Steps())


def reasons(result: ProfilingResult) -> list[str]:
    return [remark.reason for remark in result.remarks]


async def test_a_result_has_a_deployment_its_figures_and_a_front():
    result = await profile(sla={"ttft": 600, "itl": 16})
    assert result.source == "aiconfigurator"
    figures = result.selected.figures
    assert figures.meets_sla
    assert figures.itl == 10
    assert 0 < (figures.gpus or 0) <= 16
    assert figures.tokens_per_second == pytest.approx((figures.requests_per_second or 0) * 1000)
    assert result.pareto[0] == result.selected
    assert reasons(result) == []


async def test_phases_go_forward():
    steps = Steps()
    async with profiler() as rapid:
        await rapid.run(request(features={"planner": {"optimization_target": "sla"}}), steps)
    order = list(ProfilingPhase)
    places = [order.index(phase) for phase in steps.phases]
    assert places == sorted(places)
    assert steps.phases[-1] is ProfilingPhase.DONE
    assert {ProfilingPhase.SWEEPING_PREFILL, ProfilingPhase.BUILDING_CURVES, ProfilingPhase.GENERATING_DGD} <= set(
        steps.phases
    )


async def test_a_repeated_request_is_answered_from_the_cache():
    async with profiler() as rapid:
        first = await rapid.run(request(), Steps())
        ended = rapid.simulations.pool.workers
        await rapid.simulations.pool.close()
        # What is not simulated again is generated again: images do not belong to a sweep.
        again = await rapid.run(request(image="r.io/x/dynamo-planner:9"), Steps())
    assert ended > 0
    assert computed(rapid) == 2
    assert again.selected.parallelism == first.selected.parallelism
    assert "r.io/x/vllm-runtime:9" in json.dumps(again.selected.dgd)


async def test_the_cache_survives_the_process(tmp_path):
    async with profiler(cache_dir=tmp_path) as rapid:
        await rapid.run(request(), Steps())
    async with profiler(cache_dir=tmp_path) as rapid:
        await rapid.simulations.pool.close()
        await rapid.run(request(), Steps())
        assert computed(rapid) == 0


async def test_an_invalid_cache_file_is_computed_again(tmp_path):
    async with profiler(cache_dir=tmp_path) as rapid:
        await rapid.run(request(), Steps())
    for path in tmp_path.glob("*.json"):
        path.write_text("{")
    async with profiler(cache_dir=tmp_path) as rapid:
        await rapid.run(request(), Steps())
        assert computed(rapid) == 2


async def test_the_cache_is_bounded(tmp_path):
    async with profiler(cache_dir=tmp_path, cache_entries=2) as rapid:
        for isl in (1000, 2000, 3000):
            await rapid.run(request(workload={"isl": isl}), Steps())
        assert len(rapid.simulations._cache) == 2
    assert len(list(tmp_path.glob("*.json"))) == 2


async def test_a_file_that_another_replica_evicts_does_not_end_eviction(tmp_path):
    (tmp_path / "evicted.json").symlink_to(tmp_path / "nowhere")  # listed, but not there when it is examined
    async with profiler(cache_dir=tmp_path, cache_entries=2) as rapid:
        for isl in (1000, 2000):
            await rapid.run(request(workload={"isl": isl}), Steps())
    assert sum(path.is_file() for path in tmp_path.glob("*.json")) == 2


async def test_concurrent_equal_requests_are_simulated_once():
    async with profiler() as rapid:
        await asyncio.gather(*(rapid.run(request(), Steps()) for _ in range(2)))
        assert computed(rapid) == 2


async def test_different_objectives_use_different_sweeps():
    async with profiler() as rapid:
        await rapid.run(request(), Steps())
        await rapid.run(request(sla={"itl": 29}), Steps())
        assert computed(rapid) == 4


async def test_sweeps_and_processes_are_counted():
    registry = CollectorRegistry()
    with ProfilingMetrics(registry) as metrics:
        async with RapidProfiler(settings(), "1.2.0", child=FAKE, metrics=metrics) as rapid:
            await rapid.run(request(), Steps())
            await rapid.run(request(), Steps())
            assert registry.get_sample_value("dynamo_planner_profiling_workers") == 2
            assert (registry.get_sample_value("dynamo_planner_profiling_memory_bytes") or 0) > 1024 * 1024
        assert registry.get_sample_value("dynamo_planner_profiling_workers") == 0
        for cached in ("true", "false"):
            labels = {"outcome": "found", "cached": cached}
            assert registry.get_sample_value("dynamo_planner_profiling_sweeps_total", labels) == 2
    assert registry.get_sample_value("dynamo_planner_profiling_workers") is None


async def test_targets_that_no_engine_meets_give_the_closest_engine():
    result = await profile(sla={"ttft": 5, "itl": 1})
    assert not result.selected.figures.meets_sla
    assert result.selected.figures.itl == 10
    assert reasons(result) == ["ObjectiveNotMet"]
    assert "ttft 500.0 ms, itl 10.00 ms" in result.remarks[0].message
    assert result.selected.figures.gpus == 16


async def test_a_load_above_the_capacity_is_reported():
    result = await profile(workload={"requestRate": 1000.0})
    assert "LoadNotServed" in reasons(result)
    assert not result.selected.figures.meets_sla


async def test_all_backends_are_compared():
    async with profiler() as rapid:
        await rapid.run(request(backend="auto"), Steps())
        assert computed(rapid) == 6


async def test_a_point_that_overrides_invalidate_is_dropped():
    spec: dict[str, Any] = {"model": "Qwen/Qwen3-8B", "sla": {"itl": 30}}
    plain = await profile(**spec)
    assert plain.selected.figures.serving == "agg"
    assert {point.figures.serving for point in plain.pareto} == {"agg", "disagg"}
    change = {"name": "prefill", "replicas": -1}
    override = {"apiVersion": "nvidia.com/v1beta1", "spec": {"components": [change]}}
    result = await profile(**spec, overrides={"dgd": override})
    assert result.selected.parallelism == plain.selected.parallelism
    assert {point.figures.serving for point in result.pareto} == {"agg"}
    assert reasons(result) == ["OverrideIgnored"]


async def test_lengths_above_the_models_context_are_reported():
    result = await profile(workload={"isl": 120_000})
    assert reasons(result) == ["BeyondContext"]


async def test_lengths_above_the_models_context_are_reported_without_data():
    hardware = {"gpuSku": "t4", "totalGpus": 8, "numGpusPerNode": 8}
    result = await profile(workload={"isl": 120_000}, hardware=hardware)
    assert reasons(result) == ["NaiveConfiguration", "BeyondContext"]


async def test_a_model_of_the_same_architecture_is_simulated_instead():
    result = await profile(model="meta-llama/Llama-3.3-70B-Instruct")
    assert reasons(result) == ["SiblingModel"]
    assert "meta-llama/Llama-3.3-70B-Instruct" in json.dumps(result.selected.dgd)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"model": "Qwen/Qwen2.5-0.5B"}, "does not know the model"),
        ({"hardware": {"gpuSku": "t4", "totalGpus": 8, "numGpusPerNode": 8}}, "no figures of GPU t4"),
        ({"hardware": {"gpuSku": "l40s", "totalGpus": 4, "numGpusPerNode": 4}}, "fits no engine of AI Configurator"),
        (
            {"hardware": {"gpuSku": "rtx_pro_6000_server", "totalGpus": 8, "numGpusPerNode": 8}},
            "no figures of vllm on rtx_pro_6000_server",
        ),
        (
            {"hardware": {"gpuSku": "h100_pcie", "totalGpus": 8, "numGpusPerNode": 8}},
            "no figures of GPU h100_pcie, only of gb300, gb200,",
        ),
    ],
)
async def test_models_that_cannot_be_simulated_are_sized_by_memory(spec: dict[str, Any], why: str):
    result = await profile(**spec)
    assert result.source == "naive"
    assert reasons(result) == ["NaiveConfiguration"]
    assert why in result.remarks[0].message
    assert result.selected.figures.serving == "agg"
    assert result.selected.figures.tokens_per_second_per_gpu is None
    assert result.selected.figures.meets_sla is None


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"workload": {"concurrency": 50, "requestRate": 5.0}}, "InvalidWorkload"),
        ({"sla": {"ttft": 100, "e2eLatency": 1000}}, "InvalidObjective"),
        ({"hardware": None}, "HardwareUnknown"),
        ({"features": {"planner": {"mode": "sideways"}}}, "InvalidPlannerConfig"),
        ({"hardware": {"gpuSku": "l40s", "totalGpus": 1, "numGpusPerNode": 1}}, "ModelDoesNotFit"),
        ({"workload": {"isl": 0}}, "InvalidWorkload"),
        ({"workload": {"osl": 0}}, "InvalidWorkload"),
        ({"hardware": {"gpuSku": "a100_sxm", "totalGpus": 8, "numGpusPerNode": 8}}, "SimulationFailed"),
    ],
)
async def test_requests_without_a_possible_deployment_fail(spec: dict[str, Any], reason: str):
    with pytest.raises(ProfilingFailed) as failed:
        await profile(**spec)
    assert failed.value.reason == reason


async def test_cancellation_ends_running_simulations():
    async with profiler() as rapid:
        steps = Steps()
        endless = request(hardware={"gpuSku": "b200_sxm", "totalGpus": 8, "numGpusPerNode": 8})
        task = asyncio.create_task(rapid.run(endless, steps))
        await steps.heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert rapid.simulations.pool.workers == 0


async def test_a_planner_gets_the_profile_of_its_engines():
    result = await profile(features={"planner": {"optimization_target": "sla", "mode": "disagg"}})
    config, profile_data = result.selected.config_maps
    assert set(profile_data["data"]) == {"prefill_raw_data.json", "decode_raw_data.json"}
    assert profile_data["metadata"]["name"] == "planner-profile-data-qwen-dgd"
    interpolation = json.loads(config["data"]["planner_config.json"])["aic_interpolation"]
    assert interpolation["system"] == "h200_sxm"
    assert interpolation["decode_pick"]["tp"] == result.selected.parallelism["decode"]["tp"]
    assert result.selected.parallelism["prefill"]["replicas"] == 1


async def test_a_planner_of_one_pool_gets_an_aggregated_engine():
    result = await profile(features={"planner": {"mode": "agg"}})
    assert result.selected.figures.serving == "agg"
    assert json.loads(result.selected.config_maps[0]["data"]["planner_config.json"])["mode"] == "agg"


async def test_a_planner_gets_one_pool_if_two_do_not_fit():
    hardware = {"gpuSku": "gb300", "totalGpus": 8, "numGpusPerNode": 8}
    result = await profile(hardware=hardware, sla={"ttft": 600, "itl": 5}, features={"planner": {"mode": "disagg"}})
    assert result.source == "aiconfigurator"
    assert result.selected.figures.serving == "agg"
    assert result.selected.figures.itl == 10
    assert reasons(result) == ["ObjectiveNotMet", "PlannerModeChanged"]


async def test_one_gpu_reports_the_reason_of_the_aggregated_engine():
    hardware = {"gpuSku": "rtx_pro_6000_server", "totalGpus": 1, "numGpusPerNode": 1, "vramMb": 200_000}
    planner = {"enable_throughput_scaling": False, "enable_load_scaling": True}
    result = await profile(hardware=hardware, features={"planner": planner})
    assert "(no figures of vllm on rtx_pro_6000_server)" in result.remarks[0].message


async def test_the_planners_budget_limits_the_graph():
    result = await profile(features={"planner": {"mode": "disagg", "max_gpu_budget": 4}})
    assert result.selected.figures.gpus == 4


async def test_mocked_engines_read_the_profile():
    result = await profile(
        features={"planner": {"optimization_target": "sla", "mode": "disagg"}, "mocker": {"enabled": True}}
    )
    text = json.dumps(result.selected.dgd)
    assert "planner-profile-data-qwen-dgd" in text
    assert '"--num-gpu-blocks-override", "1000"' in text


@pytest.mark.parametrize("model", ["Qwen/Qwen3-32B", "unknown/model-7b"])
async def test_graphs_of_large_requests_are_generated_in_threads(model):
    """With a megabyte of overrides each takes a second."""
    labels = {f"l{number}": "x" for number in range(2000)}
    async with profiler() as rapid:
        rapid.large = RecordedOffload()
        result = await rapid.run(request(model=model, overrides={"dgd": {"metadata": {"labels": labels}}}), Steps())
    assert len(rapid.large.sizes) == len(result.pareto)
    assert min(rapid.large.sizes) > LARGE_REQUEST
