"""Curves of a PlannerConfig's engines, for a graph without a profile. Pure."""

from dynamo_shared.api.contracts.planner_interpolation import AicInterpolation

from dynamo_profiler.profiling.simulation.wire import Curves

FINEST = 32
"""Largest number of points on an axis of simulated curves; limits the configuration's value."""


def curves_of(engines: AicInterpolation, model: str, database: str) -> Curves:
    """The simulation job for the engines of a graph without a profile, from its `aic_interpolation`."""
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
