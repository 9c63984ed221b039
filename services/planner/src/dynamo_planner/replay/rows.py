"""Replays a graph's traffic with several configurations of its planner, in a worker process: one row each."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from dynamo_shared.api.contracts.planner import PlannerConfig

from dynamo_planner.core.policies import make_policy
from dynamo_planner.core.profile import DecodePoint, PrefillPoint, Profile
from dynamo_planner.core.warmup import Interval
from dynamo_planner.replay import traces
from dynamo_planner.replay.comparison import ReplayInput
from dynamo_planner.replay.graph import Graph
from dynamo_planner.replay.job import Replays
from dynamo_planner.replay.outcome import GraphSample, ReplayOutcome

MOST_SAMPLES = 400
"""Points of a row for a plot; a screen cannot show more."""


def replay(job: Replays, report: Callable[[str, str], None]) -> tuple[dict[str, Any], ...]:
    """A row for each configuration, in order; empty if there were no requests."""
    requests = traces.observed(job.steps)
    if not requests:
        return ()
    profile = Profile(
        prefill=tuple(PrefillPoint(isl=isl, ttft=ttft) for isl, ttft in job.prefill),
        decode=tuple(DecodePoint(context=context, kv_tokens=kv, itl=itl) for context, kv, itl in job.decode),
        max_kv_tokens=job.max_kv_tokens,
    )
    seconds = sum(step[1] for step in job.steps)
    rows = []
    warmups = job.warmups or ((),) * len(job.configs)
    for number, (written, intervals) in enumerate(zip(job.configs, warmups, strict=True), start=1):
        report("replay", f"configuration {number} of {len(job.configs)}, {len(requests)} requests")
        config = PlannerConfig.model_validate(written)
        run = ReplayInput(requests=requests, graph=simulated(config, job), profile=profile, until=seconds)
        warmup = [Interval(requests=count, isl=isl, osl=osl) for count, isl, osl in intervals]
        # Policies get the service's traffic, also the reference policy.
        policy = make_policy(config, policy=config.policy.value, profile=profile, warmup=warmup)
        rows.append(_row(run.planned(policy, config.policy.value)))
    return tuple(rows)


def simulated(config: PlannerConfig, job: Replays) -> Graph:
    """The graph that is simulated for a configuration."""
    graph = Graph.of(config, startup=job.startup, max_kv_tokens=job.max_kv_tokens)
    return replace(
        graph,
        replicas={pool: max(1, job.replicas.get(pool.value, least)) for pool, least in graph.replicas.items()},
        gpus={pool: job.gpus.get(pool.value, count) for pool, count in graph.gpus.items()},
        unknown_gpus=frozenset(pool for pool in graph.gpus if pool.value not in job.gpus),
        watts={pool: job.watts[pool.value] for pool in graph.gpus if pool.value in job.watts},
    )


def _row(run: ReplayOutcome) -> dict[str, Any]:
    return {
        "requests": len(run.jobs),
        "attainment": _number(run.attainment()),
        "ttftAttainment": _number(run.ttft_attainment()),
        "itlAttainment": _number(run.itl_attainment()),
        "ttftMean": _number(run.mean_ttft()),
        "ttftP99": _number(run.ttft(0.99)),
        "itlMean": _number(run.mean_itl()),
        "itlP99": _number(run.itl(0.99)),
        "gpuHours": round(run.gpu_hours, 4),
        "scalings": run.events,
        "replicas": [_moment(each) for each in changes(run.samples)],
    }


def changes(samples: Sequence[GraphSample]) -> list[GraphSample]:
    """The first and the last sample, and those whose replicas or GPUs differ from the one before; evenly thinned if
    there are too many.
    """
    kept = [
        each
        for number, each in enumerate(samples)
        if number in (0, len(samples) - 1)
        or (each.ready, each.gpus) != (samples[number - 1].ready, samples[number - 1].gpus)
    ]
    step = -(-len(kept) // MOST_SAMPLES)
    return kept if step <= 1 else [*kept[:-1:step], kept[-1]]


def _moment(sample: GraphSample) -> dict[str, Any]:
    ready = {pool.value: count for pool, count in sample.ready.items()}
    return {"at": sample.at, "ready": ready, "gpus": sample.gpus}


def _number(value: float) -> float | None:
    """A rounded number; None for NaN and infinity, which JSON lacks."""
    return round(value, 4) if isfinite(value) else None
