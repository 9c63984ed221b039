"""Engines of a graph without a profile, as its PlannerConfig describes them."""

from dynamo_profiler.profiling.interpolation import curves_of
from dynamo_shared.api.contracts.planner_interpolation import AicInterpolation


def test_engines_without_a_profile_are_simulated_by_their_configuration() -> None:
    sizes = {"hf_id": "Qwen/Qwen3-32B", "system": "h200_sxm", "backend": "vllm", "isl": 4000, "osl": 500}
    grid = {"sweep_max_context_length": 9000, "prefill_interpolation_granularity": 10**6}
    engines = AicInterpolation.model_validate({**sizes, **grid, "decode_pick": {"tp": 2}})
    made = curves_of(engines, "Qwen/Qwen3-32B", "SILICON")
    assert (made.system, made.decode["tp"], made.prefill["tp"], made.prefill_points) == ("h200_sxm", 2, 1, 32)
