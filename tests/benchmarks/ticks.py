"""CPU time of one tick of the policy `adaptive`, for a graph planned for two hours: how many graphs a core can plan.

Usage: python -m tests.benchmarks.ticks [--traffic day,sine]

Arrivals are random, at 20 requests/s on average. The last ten minutes of ticks run again and again from the same state,
and the least time of each tick counts, because other work on the machine makes the others longer. Reading inputs and
reporting are not included.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import islice
from math import pi, sin
from random import Random
from statistics import fmean
from time import process_time

from dynamo_planner.core.adaptive import AdaptivePolicy
from dynamo_planner.core.decision import Tick
from dynamo_planner.core.observation import (
    EngineCapabilities,
    EngineWork,
    ForwardPass,
    Observation,
    Pool,
    PoolCounts,
    Traffic,
)
from dynamo_planner.core.profile import DecodePoint, PrefillPoint, Profile
from dynamo_shared.api.contracts.planner import PlannerConfig

PROFILE = Profile(
    prefill=tuple(PrefillPoint(isl=isl, ttft=10 + isl / 50) for isl in (100, 1000, 2000, 4000, 8000, 16000)),
    decode=tuple(
        DecodePoint(context=context, kv_tokens=batch * context, itl=5 + 0.1 * batch)
        for context in (500.0, 2000.0, 8000.0)
        for batch in (1, 10, 50, 100)
    ),
    max_kv_tokens=1_000_000,
)
ABLE = EngineCapabilities(num_gpu=1, max_num_batched_tokens=8192, max_num_seqs=256, max_kv_tokens=1_000_000)
PERIODS = {"steady": 0.0, "day": 14400.0, "sine": 600.0}
HISTORY, MEASURED, AGAIN = 720, 60, 7
"""Ticks of ten seconds, and repetitions of the last ones."""


def ticks(policy: AdaptivePolicy, period: float) -> Iterator[tuple[Tick, Observation]]:
    """Ticks of a graph whose replicas start at once, and the observation at each."""
    random, replicas, tick = Random(1), dict.fromkeys(Pool, 2), policy.first_tick(0.0)
    while True:
        now, window = tick.at, tick.traffic_window or 0.0
        rate = 20.0 + (15.0 * sin(2 * pi * now / period) if period else 0.0)
        requests = max(0, round(random.gauss(rate * window, (rate * window) ** 0.5)))
        observation = Observation(
            now=now,
            traffic=Traffic(duration=window, requests=requests, isl=3000, osl=200, ttft=90.0, itl=7.0),
            workers={pool: PoolCounts(ready=count, expected=count) for pool, count in replicas.items()},
            forward_passes=tuple(
                _forward_pass(pool, index, rate / count) for pool, count in replicas.items() for index in range(count)
            ),
            capabilities=dict.fromkeys(Pool, ABLE),
            startup_seconds=dict.fromkeys(Pool, 60.0),
        )
        yield tick, observation
        effects = policy.on_tick(tick, observation)
        tick = effects.next_tick
        replicas |= effects.decision.replicas if effects.decision else {}


def _forward_pass(pool: Pool, index: int, rate: float) -> ForwardPass:
    prompts, sequences = (1, 0) if pool is Pool.PREFILL else (0, 1 + round(1.4 * rate))
    work = EngineWork(
        num_prefill_requests=prompts,
        sum_prefill_tokens=3000 * prompts,
        num_decode_requests=sequences,
        sum_decode_kv_tokens=3100 * sequences,
    )
    wall_time = 0.07 * prompts or (5 + 0.1 * sequences) / 1000
    return ForwardPass(pool=pool, worker_id=f"{pool.value}-{index}", wall_time=wall_time, scheduled=work)


def microseconds(period: float) -> float:
    """Mean CPU time of a tick."""
    config = {
        "mode": "disagg",
        "optimization_target": "sla",
        "ttft_ms": 250,
        "itl_ms": 10,
        "throughput_adjustment_interval_seconds": 60,
    }
    policy = AdaptivePolicy(PlannerConfig.model_validate(config), profile=PROFILE)
    running = ticks(policy, period)
    for _ in islice(running, HISTORY):
        pass
    before, measured = deepcopy(policy), list(islice(running, MEASURED))
    least = [float("inf")] * MEASURED
    for _ in range(AGAIN):
        again = deepcopy(before)
        for index, (tick, observation) in enumerate(measured):
            begun = process_time()
            again.on_tick(tick, observation)
            least[index] = min(least[index], process_time() - begun)
    return 1e6 * fmean(least)


def main(arguments: Sequence[str]) -> int:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traffic", default=",".join(PERIODS), help=f"of {', '.join(PERIODS)}")
    each = {kind: microseconds(PERIODS[kind]) for kind in parser.parse_args(arguments).traffic.split(",")}
    mean = fmean(each.values())
    print(
        f"a tick of adaptive: {mean:.0f} µs of CPU ({', '.join(f'{kind} {took:.0f}' for kind, took in each.items())}); "
        f"planned graphs a core: {30e6 / mean:,.0f} at a tick each 30 s (the default), {10e6 / mean:,.0f} each 10 s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
