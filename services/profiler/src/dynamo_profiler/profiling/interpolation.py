"""Curves of the engines that a PlannerConfig describes, where a graph has no profile. Pure."""

from dynamo_shared.api.contracts.planner_interpolation import AicInterpolation

from dynamo_profiler.profiling.simulation.wire import Curves

FINEST = 32
"""Points of an axis of simulated curves at most, whatever a configuration asks for."""


def curves_of(engines: AicInterpolation, model: str, database: str) -> Curves:
    """What simulates the engines where there is no profile, as `aic_interpolation` of the configuration says."""
    return Curves(
        model=model,
        system=engines.system,
        backend=engines.backend,
        osl=engines.osl,
        max_context=engines.sweep_max_context_length,
        prefill=engines.prefill_pick.model_dump(),
        decode=engines.decode_pick.model_dump(),
        prefill_points=min(engines.prefill_interpolation_granularity, FINEST),
        decode_points=min(engines.decode_interpolation_granularity, FINEST),
        database=database,
    )
