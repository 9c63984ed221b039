"""Replays of a graph's traffic for the REST API. The planner's own code reads the planner's input."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dynamo_dynadmin.api.simulation import NotSimulated, ReplayCase
from dynamo_planner.core.observation import UNKNOWN_STARTUP
from dynamo_planner.core.profile import Profile, ProfileError
from dynamo_planner.core.profile_arrays import from_arrays
from dynamo_planner.inputs.startup import StartupTimes
from dynamo_planner.planning.plans import NotPlannable, PlannedGraph, read_plan
from dynamo_planner.replay.whatif import InvalidChange, changed_plan, job_of
from dynamo_profiler.profiling.models import known_model
from dynamo_profiler.profiling.simulated import Simulations
from dynamo_profiler.profiling.simulation.wire import Curves, JobStatus
from dynamo_shared.api import objects
from dynamo_shared.api.contracts.planner_interpolation import AicInterpolation
from dynamo_shared.api.gpus import ReplicaGpus, of_replica
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.runtime.settings.planner import Rapid

#: Keys of the configuration that affect the result; the answer contains them.
SHOWN = (
    "policy",
    "optimization_target",
    "gpu_price",
    "attainment",
    "ttft_ms",
    "itl_ms",
    "max_gpu_budget",
    "min_endpoint",
)
FINEST = 32
"""Largest number of points on an axis of simulated curves; limits the configuration's value."""


async def replay(simulations: Simulations, settings: Rapid, case: ReplayCase) -> dict[str, Any]:
    """A row for the current configuration, a row for the changed one, and the assumptions. Raises NotSimulated."""
    try:
        # The claims are read on this thread, which changes them.
        plan, changed, remarks = await asyncio.to_thread(_plans, case, _counted(case))
    except NotPlannable as error:
        raise NotSimulated(str(error)) from error
    except InvalidChange as error:
        raise NotSimulated(str(error), error.field) from error
    profile, source = await _profile(simulations, settings, plan)
    startup, words = _startup(case)
    steps = [(each.rate, each.seconds, each.isl, each.osl) for each in case.steps]
    plans = (plan, changed)
    try:
        job = job_of(plans, profile, steps, startup=startup, replicas=case.replicas)
    except ProfileError as error:
        raise NotSimulated(str(error)) from error
    answer = await simulations.computed(job, lambda _, __: None)
    if answer.outcome is not JobStatus.FEASIBLE:
        raise NotSimulated(f"the replay has no result: {answer.message[:500]}")
    first, second = ({**row, "config": _shown(each)} for row, each in zip(answer.points, plans, strict=True))
    return {
        "current": first,
        "changed": second,
        "profile": source,
        "notes": [
            words,
            "begins with the replicas that the first decision shows"
            if case.replicas
            else "begins with the fewest replicas",
            "the cluster has enough GPUs; engines batch up to 8,192 prompt tokens and 1,024 sequences",
            "each run is judged by its own SLA",
            *remarks,
        ],
    }


def _counted(case: ReplayCase) -> dict[str, ReplicaGpus] | None:
    """GPUs of components, by name, as the planner counts them; None if the caller may not read claims."""
    if (claims := case.claims) is None:
        return None

    def counted(component: KubeObject) -> ReplicaGpus:
        pods = [pod for pod in case.pods if objects.labels(pod).get(labels.COMPONENT) == component["name"]]
        return of_replica(component, replace(claims, pods=lambda: pods))

    return {each["name"]: counted(each) for each in (case.graph.get("spec") or {}).get("components") or ()}


def _plans(case: ReplayCase, counted: Mapping[str, ReplicaGpus] | None) -> tuple[PlannedGraph, PlannedGraph, list[str]]:
    """The plan as it is, the changed one, and remarks on the changes."""
    plan = read_plan(case.graph, case.config_map, case.profile_map, counted)
    assert case.config_map is not None, "read_plan refuses a missing one"
    return plan, *changed_plan(case.graph, case.config_map, case.profile_map, case.changes, counted)


async def _profile(simulations: Simulations, settings: Rapid, plan: PlannedGraph) -> tuple[Profile, str]:
    """The planner's profile; if it has none, the profile that `aic_interpolation` of its configuration describes."""
    if plan.profile is not None:
        return plan.profile, "the planner's profile"
    engines = plan.config.aic_interpolation
    missing = (
        "there is no profile of this graph's engines: neither a ConfigMap with prefill_raw_data.json and "
        "decode_raw_data.json, nor aic_interpolation in its PlannerConfig; a deployment request with a planner creates both"
    )
    if engines is None:
        raise NotSimulated(missing)
    model = await asyncio.to_thread(known_model, engines.hf_id, settings)
    if not model.path:
        raise NotSimulated(f"AI Configurator does not know the model {engines.hf_id}, and {missing}")
    job = curves_of(engines, model.path, settings.database.value)
    answer = await simulations.answer(job, model.digest, lambda _, __: None)
    if answer.curves is None:
        raise NotSimulated(f"the engines cannot be simulated: {answer.message[:300]}; {missing}")
    profile = Profile()
    for name, arrays in answer.curves.items():
        profile = profile.joined(from_arrays(arrays, name))
    return profile, "simulated by AI Configurator with the values of aic_interpolation"


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


def _startup(case: ReplayCase) -> tuple[float, str]:
    if case.startup is not None:
        return case.startup, f"a new replica takes {case.startup:g} s to serve, as requested"
    times = StartupTimes()
    times.learn(case.pods)
    if times.seconds is not None:
        return times.seconds, f"a new replica takes {times.seconds:g} s to serve, the median of the graph's pods"
    return UNKNOWN_STARTUP, f"a new replica takes {UNKNOWN_STARTUP:g} s to serve: no pod start was observed"


def _shown(plan: PlannedGraph) -> dict[str, Any]:
    return plan.config.model_dump(mode="json", include=set(SHOWN))
