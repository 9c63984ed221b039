"""Compares policies over the same simulated traffic: requests within their targets, GPU-hours, scaling decisions.

Usage: python -m tests.benchmarks.plan [--seeds 1-10] [--traffic sine,day] [--startups 0,60] [--interval SECONDS]
[--processes N] [--traces FOLDER] [--report FILE]

Each row is compared with the best plan in hindsight (`clairvoyant.py`) at equal attainment and at equal GPU-hours,
the best plan that follows the load without predicting it (`following.py`), the reference's policy, an HPA
on concurrency (`hpa.py`), and the best fixed split. Traffic is in `traffic.py`.
Engines are those of the measured profile (Llama-3.1-8B FP8 on one H200), straight lines between its points; 8 GPUs
at most. Targets are TTFT 200 ms and ITL 10 ms, as of the published run of the reference (planner.md, section c
1), longer for recorded prompts. Results that do not depend on the policy `adaptive` are cached on disk
(`remembered.py`).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import inf
from pathlib import Path

from dynamo_planner.core.estimator.capacity import decode_capacity
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.observation import Pool
from dynamo_planner.core.policies import PolicyName
from dynamo_planner.core.profile import Profile
from dynamo_planner.profile_files import read_profile
from dynamo_planner.replay.comparison import ReplayInput
from dynamo_planner.replay.graph import Graph
from dynamo_planner.replay.outcome import ReplayOutcome
from dynamo_planner.replay.report import report
from dynamo_shared.api.contracts.planner import PlannerConfig

from tests.benchmarks import splits
from tests.benchmarks.clairvoyant import Hindsight, at_least, kept_by_slot, plans, within
from tests.benchmarks.estimator import PROFILES
from tests.benchmarks.following import followers
from tests.benchmarks.hpa import ConcurrencyHpa
from tests.benchmarks.remembered import digest, remembered
from tests.benchmarks.traffic import KINDS, TRACES_VARIABLE, Traffic, traffic

NAME = "h200-llama-3.1-8b-fp8"
STARTUPS = (0.0, 60.0, 120.0, 300.0)
KEPT, REACHES, DEARER = 0.95, 0.97, 1.25
"""Goals: this share kept wherever hindsight keeps the second share, for at most this factor of hindsight's GPU-
hours."""
IDLE_AFTER = 900.0
"""Second at which the traffic of the idle run stops, an arbitrary point of the second wave's fall."""
MAX_UTILIZATION = 0.7
"""The HPA's targets, as a share of what an engine sustains within its target."""


@dataclass(frozen=True)
class Row:
    """Figures of one run, without its requests."""

    attainment: float
    gpu_hours: float
    events: int
    name: str = ""

    @classmethod
    def of(cls, outcome: ReplayOutcome) -> Row:
        return cls(outcome.attainment(), outcome.gpu_hours, outcome.events, outcome.name)


@cache
def _profile() -> Profile:
    return read_profile([PROFILES / f"{NAME}-prefill.npz", PROFILES / f"{NAME}-decode.npz"])


@cache
def _traffic(kind: str, seed: int) -> Traffic:
    return traffic(kind, seed)


def _config(of: Traffic, interval: int) -> PlannerConfig:
    return PlannerConfig.model_validate(
        {
            "mode": "disagg",
            "optimization_target": "sla",
            "ttft_ms": of.ttft_ms,
            "itl_ms": of.itl_ms,
            "enable_load_scaling": True,
            "throughput_adjustment_interval_seconds": interval,
            "prefill_engine_num_gpu": 1,
            "decode_engine_num_gpu": 1,
            # Prompts of Mooncake's trace share prefixes, and only routers report the hit rate.
            "throughput_metrics_source": "router",
        }
    )


def _replay(of: Traffic, startup: float, interval: int) -> ReplayInput:
    graph = Graph.of(_config(of, interval), startup=startup, max_kv_tokens=_profile().max_kv_tokens)
    return ReplayInput(requests=of.requests, graph=graph, profile=_profile(), until=of.seconds)


def _key(of: Traffic, *more: object) -> list[object]:
    return [digest(of.requests), of.seconds, of.ttft_ms, of.itl_ms, NAME, *more]


def adaptive(kind: str, seed: int, startup: float, interval: int) -> Row:
    """One run of `adaptive`."""
    of = _traffic(kind, seed)
    return Row.of(_replay(of, startup, interval).policy("adaptive", _config(of, interval)))


def baseline(kind: str, seed: int, startup: float, interval: int, name: str) -> Row:
    """One run of the reference's policy, or of the HPA."""
    of = _traffic(kind, seed)

    def run() -> dict[str, float | str]:
        replay, config = _replay(of, startup, interval), _config(of, interval)
        outcome = replay.policy("reference", config) if name == "reference" else replay.planned(_hpa(of), "hpa")
        return asdict(Row.of(outcome))

    return Row(**remembered(_key(of, startup, interval, name), run))


def _hpa(of: Traffic) -> ConcurrencyHpa:
    count = len(of.requests)
    isl, osl = (sum(getattr(each, name) for each in of.requests) / count for name in ("isl", "osl"))
    decode = decode_capacity(EngineEstimator(_profile()), isl + osl / 2, osl, of.itl_ms).batch
    # Prefill runs one prompt at a time and soon starts the next; more prompts would wait for each other.
    return ConcurrencyHpa({Pool.PREFILL: 1.0, Pool.DECODE: MAX_UTILIZATION * decode}, splits.MOST)


def one_pool(kind: str, seed: int, pool: Pool) -> dict[str, str]:
    """Requests in time by the replicas of a pool of constant size."""
    of = _traffic(kind, seed)
    return remembered(_key(of, pool.value, "by replicas"), lambda: splits.by_replicas(_replay(of, 0.0, 60), pool))


def idle(seed: int, startup: float, interval: int, policy: PolicyName) -> float | None:
    """Seconds from the end of the traffic, at its peak, to the minimum; None if it is not reached."""
    of = _traffic("sine", seed)
    kept = [request for request in of.requests if request.at < IDLE_AFTER]
    replay = replace(_replay(of, startup, interval), requests=kept, until=IDLE_AFTER + 900)
    samples = replay.policy(policy, _config(of, interval)).samples
    kept_more = (
        sample for sample in samples if any(sample.target.get(pool) != 1 for pool in (Pool.PREFILL, Pool.DECODE))
    )
    last = max((sample.at for sample in kept_more if sample.at >= IDLE_AFTER), default=IDLE_AFTER)
    return None if not samples or last >= samples[-1].at else last - IDLE_AFTER


@dataclass(frozen=True)
class Line:
    """One row of the table: traffic, seed, start-up time, and the result of each policy."""

    kind: str
    seed: int
    startup: float
    adaptive: Row
    reference: Row
    hpa: Row
    static: Row
    hindsight: list[Hindsight]
    following: list[Hindsight]
    """plans that follow the load, with their best settings"""

    @property
    def promised(self) -> Hindsight:
        """Hindsight's cheapest plan that keeps `KEPT`; if none does, the one that keeps most."""
        return at_least(self.hindsight, KEPT)

    @property
    def followed(self) -> tuple[float, float]:
        """The best plan that follows: its share for `DEARER` times that plan's GPU-hours, and the factor for as many.

        The factor is infinite if no plan that follows keeps as many.
        """
        share = within(self.following, DEARER * self.promised.gpu_hours).attainment
        enough = at_least(self.following, min(KEPT, self.promised.attainment))
        keeps = enough.attainment >= min(KEPT, self.promised.attainment)
        return share, enough.gpu_hours / self.promised.gpu_hours if keeps else inf

    @property
    def reachable(self) -> float:
        """The largest share that hindsight keeps."""
        return max(plan.attainment for plan in self.hindsight)

    @property
    def equal(self) -> Hindsight:
        """Hindsight's cheapest plan that keeps what `adaptive` kept."""
        return at_least(self.hindsight, self.adaptive.attainment)

    @property
    def name(self) -> str:
        return f"{self.kind} {self.startup:.0f} s (seed {self.seed})"


def main(arguments: Sequence[str]) -> int:
    """Print the table, the goals and one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="11", help="of the traffic: 11, 1-10 or 1,4,7")
    parser.add_argument("--traffic", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--startups", default=",".join(f"{s:g}" for s in STARTUPS), help="seconds")
    parser.add_argument("--interval", type=int, default=60, help="throughput_adjustment_interval_seconds of both")
    parser.add_argument("--processes", type=int, default=2, help="1 leaves a core to others")
    parser.add_argument("--report", type=Path, help="write the runs of the sine at 60 s start-up as HTML")
    parser.add_argument("--traces", type=Path, help="folder of the recorded traces; without it shared/planning/traces")
    chosen = parser.parse_args(arguments)
    if not PROFILES.is_dir():
        print(f"no measured profiles at {PROFILES}")
        return 2
    if chosen.traces:
        os.environ[TRACES_VARIABLE] = str(chosen.traces.resolve())
    seeds, interval = _seeds(chosen.seeds), chosen.interval
    startups = [float(each) for each in chosen.startups.split(",")]
    print(
        "requests within TTFT and ITL, GPU-hours, scaling decisions; in hindsight: GPU-hours for as many requests in time,"
    )
    print("requests in time for as many GPU-hours, and the most that can be kept; following the load at best: requests")
    print(
        f"in time for {DEARER:g} times hindsight's GPU-hours for {100 * KEPT:.0f} %, and times these hours for as many"
    )
    print(
        f"{'traffic':<11} {'seed':>4} {'start-up':>8}  {'adaptive':<20} {'hindsight: equal, equal, most':<30} "
        f"{'following':<14} {'reference':<20} {'HPA on concurrency':<20} {'best static split':<20}"
    )
    lines: list[Line] = []
    with ProcessPoolExecutor(chosen.processes) as pool:
        for seed in seeds:
            for kind in chosen.traffic.split(","):
                lines += _rows(pool, kind, seed, startups, interval)
        ends = [
            (
                s,
                pool.submit(idle, seeds[0], s, interval, "adaptive"),
                pool.submit(idle, seeds[0], s, interval, "reference"),
            )
            for s in startups
        ]
        idles = [(startup, ended.result(), theirs.result()) for startup, ended, theirs in ends]
    _print_goals(lines, idles, interval)
    if chosen.report:
        of = _traffic("sine", seeds[0])
        replay, config = _replay(of, 60.0, interval), _config(of, interval)
        outcomes = [replay.policy("adaptive", config), replay.policy("reference", config)]
        outcomes.append(replay.static({Pool.PREFILL: 3, Pool.DECODE: 3}))
        chosen.report.write_text(report(outcomes, "Sine of 5 to 45 requests/s, start-up 60 s"), encoding="utf-8")
    return 0


def _rows(pool: ProcessPoolExecutor, kind: str, seed: int, startups: Sequence[float], interval: int) -> list[Line]:
    ways = [
        (
            startup,
            pool.submit(adaptive, kind, seed, startup, interval),
            pool.submit(baseline, kind, seed, startup, interval, "reference"),
            pool.submit(baseline, kind, seed, startup, interval, "hpa"),
        )
        for startup in startups
    ]
    runs = {role: pool.submit(one_pool, kind, seed, role) for role in Pool}
    of = _traffic(kind, seed)
    count = len(of.requests)
    flags = {
        role: {int(n): splits.flags_of(digits, count) for n, digits in run.result().items()}
        for role, run in runs.items()
    }
    at = [each.at for each in of.requests]
    kept = splits.kept(flags[Pool.PREFILL], flags[Pool.DECODE], at, of.seconds)
    arrivals = kept_by_slot(at, [True] * count, of.seconds)
    fixed = [
        Row(float(each.sum()) / count, (p + d) * of.seconds / 3600, 0, f"{p}P{d}D") for (p, d), each in kept.items()
    ]
    best = min(fixed, key=lambda row: (-round(row.attainment, 3), row.gpu_hours))
    lines = []
    for startup, row, reference, hpa in ways:
        rows = row.result(), reference.result(), hpa.result(), best
        lines.append(Line(kind, seed, startup, *rows, plans(kept, count, startup), followers(kept, arrivals, startup)))
        _print_line(lines[-1])
    if of.source != "by chance":
        print(f"{'':<11} {kind}: {of.source}, TTFT {of.ttft_ms:g} ms, ITL {of.itl_ms:g} ms")
    return lines


def _seeds(text: str) -> list[int]:
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else [int(each) for each in text.split(",")]


def _print_line(line: Line) -> None:
    equal, same = line.equal, within(line.hindsight, line.adaptive.gpu_hours)
    hindsight = f"{equal.gpu_hours:5.2f} h {100 * same.attainment:5.1f} % {100 * line.reachable:5.1f} %"
    share, times = line.followed
    following = f"{100 * share:5.1f} % {times:5.2f}"
    print(
        f"{line.kind:<11} {line.seed:>4} {line.startup:>6.0f} s  {_cells(line.adaptive):<20} {hindsight:<30} "
        f"{following:<14} {_cells(line.reference):<20} {_cells(line.hpa):<20} {_split(line.static):<20}",
        flush=True,
    )


def _cells(row: Row) -> str:
    return f"{100 * row.attainment:5.1f}% {row.gpu_hours:5.2f}h {row.events:4d}"


def _split(row: Row) -> str:
    return f"{row.name} {100 * row.attainment:5.1f}% {row.gpu_hours:5.2f}h"


def _print_goals(
    lines: Sequence[Line], idles: Sequence[tuple[float, float | None, float | None]], interval: int
) -> None:
    keepable = [line for line in lines if line.reachable >= REACHES]
    print()
    rows = {
        name: [line for line in keepable if name == f"{line.kind} {line.startup:.0f} s"] for name in _names(keepable)
    }
    means = {name: _mean([line.adaptive.attainment for line in each]) for name, each in rows.items()}
    short = [f"{name} {100 * mean:.1f} %" for name, mean in means.items() if mean < KEPT]
    _goal(
        f"mean attainment over seeds of {100 * KEPT:.0f} % wherever hindsight keeps {100 * REACHES:.0f} %",
        not short,
        f"{100 * _mean(list(means.values())):.1f} % over {len(means)} rows; below it in {len(short)}: "
        f"{', '.join(short) or 'none'}",
    )
    ratios = {
        name: _mean([line.adaptive.gpu_hours / line.equal.gpu_hours for line in each]) for name, each in rows.items()
    }
    dear = [f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio > DEARER]
    _goal(
        f"at most {DEARER:g} times the GPU-hours of hindsight for as many requests in time",
        not dear,
        f"{_mean(list(ratios.values())):.2f} times on the mean; more in {len(dear)}: {', '.join(dear) or 'none'}",
    )
    _print_following(rows)
    for other in ("reference", "hpa"):
        lower = [line.name for line in lines if line.adaptive.attainment < getattr(line, other).attainment]
        _goal(f"never below the {other}", not lower, f"below in {len(lower)}: {', '.join(lower) or 'none'}")
    events, theirs = (sum(getattr(line, name).events for line in lines) for name in ("adaptive", "reference"))
    _goal("a third of the scaling decisions", 3 * events <= theirs, f"{events} against {theirs}")
    slow = [s for s, ended, _ in idles if ended is None or ended > 2 * interval]
    reached, others = (
        ", ".join("never" if each[place] is None else f"{each[place]:.0f} s" for each in idles) for place in (1, 2)
    )
    _goal(
        f"minimum within two intervals ({2 * interval} s) after traffic stops at its peak",
        not slow,
        f"{reached}; reference {others}",
    )
    worst = min(lines, key=lambda line: line.adaptive.attainment - min(line.reachable, KEPT))
    total = {
        name: _mean([getattr(line, name).attainment for line in lines]) for name in ("adaptive", "reference", "hpa")
    }
    hours = {name: sum(getattr(line, name).gpu_hours for line in lines) for name in total}
    print(
        f"\nadaptive keeps both targets for {100 * total['adaptive']:.1f} % of requests (mean of {len(lines)} rows, "
        f"{hours['adaptive']:.1f} GPU-hours), reference {100 * total['reference']:.1f} % ({hours['reference']:.1f}), HPA "
        f"{100 * total['hpa']:.1f} % ({hours['hpa']:.1f}); worst row {worst.name}: {100 * worst.adaptive.attainment:.1f} % "
        f"where hindsight keeps {100 * worst.reachable:.1f} %"
    )


def _print_following(rows: Mapping[str, Sequence[Line]]) -> None:
    """The rows in which both goals can be reached without predicting the load."""
    shares = {name: _mean([line.followed[0] for line in each]) for name, each in rows.items()}
    beyond = [f"{name} {100 * share:.1f} %" for name, share in shares.items() if share < KEPT]
    print(
        f"        following the load at best, not knowing when it comes, keeps {100 * KEPT:.0f} % for {DEARER:g} times "
        f"hindsight's GPU-hours in {len(rows) - len(beyond)} of these {len(rows)}; for as many hours in the others: "
        f"{', '.join(beyond) or 'none'}"
    )


def _names(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(f"{line.kind} {line.startup:.0f} s" for line in lines))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _goal(words: str, holds: bool, figures: str) -> None:
    print(f"{'holds ' if holds else 'MISSED'}  {words}: {figures}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
