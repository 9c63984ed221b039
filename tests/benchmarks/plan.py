"""Policies over the same traffic, simulated: requests within their targets, GPU-hours, scaling decisions.

Usage: python -m tests.benchmarks.plan [--seed N] [--interval SECONDS] [--processes N] [--report FILE]

Targets are TTFT 200 ms and ITL 10 ms, as of the published run of the reference (planner notes, section c 1); engines are
those of the measured profile (Llama-3.1-8B FP8 on one H200), straight lines between its points; 8 GPUs at most.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from dynamo_planner.core.observing import Pool
from dynamo_planner.core.policies import PolicyName
from dynamo_planner.core.profile import Profile
from dynamo_planner.profile_files import read_profile
from dynamo_planner.replay import traces
from dynamo_planner.replay.graph import Graph
from dynamo_planner.replay.outcome import Outcome
from dynamo_planner.replay.replaying import Replay
from dynamo_planner.replay.report import report
from dynamo_planner.replay.traces import Request
from dynamo_shared.api.contracts.planner import PlannerConfig

from tests.benchmarks.estimator import PROFILES

NAME = "h200-llama-3.1-8b-fp8"
STARTUPS = (0.0, 60.0, 120.0, 300.0)
TRAFFIC = ("sine", "ladder", "bursts")
IDLE_AFTER = 900.0
"""Second at which the traffic of the idle run stops, three quarters up the second wave's fall being nothing special."""


@dataclass(frozen=True)
class Row:
    """Figures of one run, without its requests."""

    attainment: float
    ttft: float
    itl: float
    gpu_hours: float
    events: int
    name: str = ""

    @classmethod
    def of(cls, outcome: Outcome) -> Row:
        return cls(
            outcome.attainment(),
            outcome.ttft_attainment(),
            outcome.itl_attainment(),
            outcome.gpu_hours,
            outcome.events,
            outcome.name,
        )


def traffic(kind: str, seed: int) -> tuple[list[Request], float]:
    """Requests, and the seconds that are planned for."""
    match kind:
        case "sine":
            return traces.sine(low=5, high=45, period=600, seconds=1800, isl=3000, osl=300, seed=seed), 1800.0
        case "ladder":
            # The reference's end-to-end ladder, its steps long enough for the longest start-up; the gap as it is.
            steps = ((8.0, 450.0), (0.0, 30.0), (18.0, 720.0))
            return traces.ladder(steps=steps, isl=4000, osl=150, seed=seed), 1200.0
        case _:
            made = traces.bursts(low=8, high=30, every=360, length=120, seconds=1800, isl=3000, osl=300, seed=seed)
            return made, 1800.0


@cache
def _profile() -> Profile:
    return read_profile([PROFILES / f"{NAME}-prefill.npz", PROFILES / f"{NAME}-decode.npz"])


def _config(interval: int) -> PlannerConfig:
    return PlannerConfig.model_validate(
        {
            "mode": "disagg",
            "optimization_target": "sla",
            "ttft_ms": 200,
            "itl_ms": 10,
            "enable_load_scaling": True,
            "throughput_adjustment_interval_seconds": interval,
            "prefill_engine_num_gpu": 1,
            "decode_engine_num_gpu": 1,
        }
    )


def _replay(kind: str, seed: int, startup: float, interval: int) -> Replay:
    requests, seconds = traffic(kind, seed)
    graph = Graph.of(_config(interval), startup=startup, max_kv_tokens=_profile().max_kv_tokens)
    return Replay(requests=requests, graph=graph, profile=_profile(), until=seconds)


def planned(kind: str, seed: int, startup: float, interval: int, policy: PolicyName) -> Row:
    """One run of a policy."""
    return Row.of(_replay(kind, seed, startup, interval).policy(policy, _config(interval)))


def static(kind: str, seed: int, interval: int, split: tuple[int, int]) -> Row:
    """One run of a split, whose replicas are all there from the beginning."""
    prefill, decode = split
    return Row.of(_replay(kind, seed, 0.0, interval).static({Pool.PREFILL: prefill, Pool.DECODE: decode}))


def idle(seed: int, startup: float, interval: int, policy: PolicyName) -> float | None:
    """Seconds from the end of the traffic, at its peak, to the minimum; None if it is not reached."""
    requests, _ = traffic("sine", seed)
    kept = [request for request in requests if request.at < IDLE_AFTER]
    replay = replace(_replay("sine", seed, startup, interval), requests=kept, until=IDLE_AFTER + 900)
    return replay.policy(policy, _config(interval)).reached({Pool.PREFILL: 1, Pool.DECODE: 1}, IDLE_AFTER)


def main(arguments: Sequence[str]) -> int:
    """Print the table, the goals and one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=11, help="of the traffic")
    parser.add_argument("--interval", type=int, default=60, help="throughput_adjustment_interval_seconds of both")
    parser.add_argument("--processes", type=int, default=2, help="1 leaves a core to others")
    parser.add_argument("--report", type=Path, help="write the runs of the sine at 60 s start-up as HTML")
    chosen = parser.parse_args(arguments)
    if not PROFILES.is_dir():
        print(f"no measured profiles at {PROFILES}")
        return 2
    seed, interval = chosen.seed, chosen.interval
    keys = [(kind, startup) for kind in TRAFFIC for startup in STARTUPS]
    splits = [(p, d) for p in range(1, 6) for d in range(1, 6) if p + d <= 8]
    with ProcessPoolExecutor(chosen.processes) as pool:
        ours = [pool.submit(planned, kind, seed, startup, interval, "adaptive") for kind, startup in keys]
        theirs = [pool.submit(planned, kind, seed, startup, interval, "reference") for kind, startup in keys]
        fixed = {kind: [pool.submit(static, kind, seed, interval, split) for split in splits] for kind in TRAFFIC}
        ends = [
            (pool.submit(idle, seed, s, interval, "adaptive"), pool.submit(idle, seed, s, interval, "reference"))
            for s in STARTUPS
        ]
        adaptive, reference = [run.result() for run in ours], [run.result() for run in theirs]
        statics = {kind: [run.result() for run in runs] for kind, runs in fixed.items()}
        idles = [(a.result(), b.result()) for a, b in ends]
    _print_rows(keys, adaptive, reference, statics)
    _print_goals(adaptive, reference, idles, keys, interval)
    if chosen.report:
        replay, config = _replay("sine", seed, 60.0, interval), _config(interval)
        outcomes = [replay.policy("adaptive", config), replay.policy("reference", config)]
        outcomes.append(replay.static({Pool.PREFILL: 3, Pool.DECODE: 3}))
        chosen.report.write_text(report(outcomes, "Sine of 5 to 45 requests/s, start-up 60 s"), encoding="utf-8")
    return 0


def _print_rows(
    keys: Sequence[tuple[str, float]],
    adaptive: Sequence[Row],
    reference: Sequence[Row],
    statics: dict[str, list[Row]],
) -> None:
    print("within TTFT 200 ms and ITL 10 ms (TTFT alone / ITL alone), GPU-hours, scaling decisions")
    print(
        f"{'traffic':<8} {'start-up':>8}  {'adaptive':<36} {'reference':<36} {'best static split':<26} "
        f"{'best static, GPU-hours of adaptive':<26}"
    )
    for (kind, startup), ours, theirs in zip(keys, adaptive, reference, strict=True):
        best = _best(statics[kind])
        within = [row for row in statics[kind] if row.gpu_hours <= ours.gpu_hours]
        equal = _split(_best(within)) if within else "none is as cheap"
        print(f"{kind:<8} {startup:>6.0f} s  {_cells(ours):<36} {_cells(theirs):<36} {_split(best):<26} {equal:<26}")


def _best(rows: Sequence[Row]) -> Row:
    return min(rows, key=lambda row: (-round(row.attainment, 3), row.gpu_hours))


def _cells(row: Row) -> str:
    return f"{100 * row.attainment:5.1f} % ({100 * row.ttft:3.0f} / {100 * row.itl:3.0f}) {row.gpu_hours:5.2f} h {row.events:4d}"


def _split(row: Row) -> str:
    return f"{row.name.removeprefix('static ')} {100 * row.attainment:5.1f} % {row.gpu_hours:5.2f} h"


def _print_goals(
    ours: Sequence[Row],
    theirs: Sequence[Row],
    idles: Sequence[tuple[float | None, float | None]],
    keys: Sequence[tuple[str, float]],
    interval: int,
) -> None:
    pairs = list(zip(keys, ours, theirs, strict=True))
    lower = [_name(key) for key, a, b in pairs if a.attainment < b.attainment]
    late = [(key, a, b) for key, a, b in pairs if key[1] >= 60]
    not_higher = [_name(key) for key, a, b in late if a.attainment <= b.attainment]
    hours, hours_theirs = sum(a.gpu_hours for a in ours), sum(b.gpu_hours for b in theirs)
    events, events_theirs = sum(a.events for a in ours), sum(b.events for b in theirs)
    slow = [f"start-up {s:.0f} s" for s, (a, _) in zip(STARTUPS, idles, strict=True) if a is None or a > 2 * interval]
    told = ", ".join("never" if b is None else f"{b:.0f} s" for _, b in idles)
    reached = ", ".join("never" if a is None else f"{a:.0f} s" for a, _ in idles)
    print()
    _goal("attainment no lower in any row", not lower, f"lower in {', '.join(lower)}" if lower else "12 of 12 rows")
    _goal(
        "higher where start-up is 60 s and more",
        not not_higher,
        f"not in {', '.join(not_higher)}" if not_higher else f"{len(late)} of {len(late)} rows",
    )
    _goal("fewer GPU-hours in sum", hours < hours_theirs, f"{hours:.1f} against {hours_theirs:.1f}")
    _goal("a third of the scaling decisions", 3 * events <= events_theirs, f"{events} against {events_theirs}")
    _goal(
        f"minimum within two intervals ({2 * interval} s) after traffic stops at its peak",
        not slow,
        f"{reached}; reference {told}",
    )
    mean, mean_theirs = sum(a.attainment for a in ours) / len(ours), sum(b.attainment for b in theirs) / len(theirs)
    print(
        f"\nadaptive keeps both targets for {100 * mean:.1f} % of requests (mean of rows), reference {100 * mean_theirs:.1f} %; "
        f"GPU-hours {hours:.1f} / {hours_theirs:.1f}, scaling decisions {events} / {events_theirs}"
    )


def _goal(words: str, holds: bool, figures: str) -> None:
    print(f"{'holds ' if holds else 'MISSED'}  {words}: {figures}")


def _name(key: tuple[str, float]) -> str:
    return f"{key[0]} {key[1]:.0f} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
