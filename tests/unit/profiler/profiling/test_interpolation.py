"""Engines of a graph without a profile, as its PlannerConfig describes them."""

from __future__ import annotations

from typing import Any

from dynamo_profiler.profiling.interpolation import curves_of
from dynamo_shared.api.contracts.planner import PlannerConfig


def config(**more: Any) -> PlannerConfig:
    return PlannerConfig.model_validate({"mode": "agg", "optimization_target": "sla", **more})


def test_engines_without_a_profile_are_simulated_as_the_configuration_says() -> None:
    assert curves_of(config(), "Qwen/Qwen3-32B", "SILICON") is None
    sizes = {"hf_id": "Qwen/Qwen3-32B", "system": "h200_sxm", "backend": "vllm", "isl": 4000, "osl": 500}
    engines = {**sizes, "sweep_max_context_length": 9000, "decode_pick": {"tp": 2}}
    grid = {"prefill_interpolation_granularity": 10**6}
    made = curves_of(config(aic_interpolation={**engines, **grid}), "Qwen/Qwen3-32B", "SILICON")
    assert made is not None
    assert (made.system, made.decode["tp"], made.prefill["tp"], made.prefill_points) == ("h200_sxm", 2, 1, 32)
