"""Deployments by memory alone."""

from typing import Any

import pytest
from dynamo_profiler.profiling.models import KnownFrom, ModelArchitecture
from dynamo_profiler.profiling.naive import naive
from dynamo_profiler.profiling.results import ProfilingFailed

from tests.unit.profiler.profiling.profiling_world import objective

GIB = 1024**3


def model(gib: float | None) -> ModelArchitecture:
    return ModelArchitecture(name="acme/m", known=KnownFrom.NAME, weights_bytes=None if gib is None else int(gib * GIB))


def hardware(sku: str = "h100_sxm", total: int = 16, node: int = 8, **more: object) -> dict[str, object]:
    return {"hardware": {"gpuSku": sku, "totalGpus": total, "numGpusPerNode": node, **more}}


@pytest.mark.parametrize(
    ("gib", "tp", "pp", "replicas"),
    [
        (10, 1, 1, 16),
        # 80 GiB each, and half as much again as the weights: 60 GiB need 90.
        (53, 1, 1, 16),
        (60, 2, 1, 8),
        (140, 4, 1, 4),
        (400, 8, 1, 2),
        (600, 8, 2, 1),
    ],
)
def test_the_smallest_engine_that_holds_the_weights_is_selected(gib: float, tp: int, pp: int, replicas: int):
    layout = naive(model(gib), objective(**hardware()), "why").layout
    engine = layout.engines["agg"]
    assert (engine.tp, engine.pp, layout.replicas["agg"]) == (tp, pp, replicas)
    assert layout.serving == "agg"


SLA = {"features": {"planner": {"optimization_target": "sla", "enable_throughput_scaling": True}}}


@pytest.mark.parametrize(
    ("gib", "spec", "reason", "match"),
    [
        (1300, {}, "ModelDoesNotFit", "needs 25 GPUs of 81559 MiB or more"),
        (10, SLA, "NoFiguresForThroughputScaling", "throughput scaling needs figures"),
    ],
)
def test_what_memory_alone_cannot_give_fails_with_the_reason(gib: float, spec: dict[str, Any], reason: str, match: str):
    with pytest.raises(ProfilingFailed, match=match) as failed:
        naive(model(gib), objective(**spec, **hardware()), "why")
    assert failed.value.reason == reason


def test_stated_memory_has_precedence():
    layout = naive(model(30), objective(**hardware("l40s", 4, 4, vramMb=24_000)), "why").layout
    assert layout.engines["agg"].tp == 2


def test_a_model_of_unknown_size_gets_a_node_and_a_remark():
    made = naive(model(None), objective(**hardware(total=12, node=6)), "why")
    assert made.layout.engines["agg"].tp == 4
    assert "name has no number of parameters" in made.remarks[0].message


def test_a_guess_is_reported():
    made = naive(model(10), objective(**hardware()), "no one knows it")
    assert made.remarks[0].reason == "NaiveConfiguration"
    assert "no one knows it" in made.remarks[0].message
    assert "guessed from the name" in made.remarks[0].message


def test_vllm_is_the_default_backend():
    assert naive(model(10), objective(backend="auto", **hardware()), "why").layout.backend == "vllm"
    assert naive(model(10), objective(backend="sglang", **hardware()), "why").layout.backend == "sglang"


LOAD = {"planner": {"mode": "disagg", "enable_load_scaling": True, "enable_throughput_scaling": False}}


def test_a_disaggregated_planner_gets_both_roles():
    layout = naive(model(10), objective(features=LOAD, **hardware()), "why").layout
    assert layout.replicas == {"prefill": 1, "decode": 1}


def test_a_planner_gets_its_minimum_of_each_role():
    least = {"prefill_min_endpoint": 2, "decode_min_endpoint": 3}
    planner = {"mode": "disagg", "enable_throughput_scaling": False, "enable_load_scaling": True, **least}
    made = naive(model(10), objective(features={"planner": planner}, **hardware()), "why")
    assert made.layout.replicas == {"prefill": 2, "decode": 3}


def test_one_gpu_gives_one_pool():
    made = naive(model(10), objective(features=LOAD, **hardware(total=1, node=1)), "why")
    assert made.layout.replicas == {"agg": 1}
    assert [remark.reason for remark in made.remarks] == ["NaiveConfiguration", "PlannerModeChanged"]
