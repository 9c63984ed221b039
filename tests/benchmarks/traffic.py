"""The traffic of `make bench-plan`: random shapes, and recorded public traces.

Recorded traces are the hour of conversations of Mooncake (kvcache-ai/Mooncake, FAST '25 release) and the hours of
conversations and of code of Azure's LLM inference traces of 2023 (Azure/AzurePublicDataset). If the files are available
(shared/planning/traces next to the checkout, or the folder of `--traces`), the first half hour is replayed; otherwise
it is rebuilt from statistics: requests a minute, and quantiles of the lengths. A seed decides how copies of the trace,
which raise its load to a level for some GPUs, are shifted within seconds.
"""

import csv
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from math import cos, pi
from pathlib import Path
from random import Random

import numpy as np
from dynamo_planner.replay import traces
from dynamo_planner.replay.traces import TraceRequest

TRACES = Path(__file__).resolve().parents[3] / "shared" / "planning" / "traces"
TRACES_VARIABLE = "BENCH_PLAN_TRACES"
"""Names another folder, also for worker processes."""
HALF_HOUR = 1800.0
TWO_HOURS = 7200.0
APART = 5.0
"""Seconds by which copies of a recorded request are spread: bursts of minutes keep their shape."""
COPY_BLOCKS = 1_000_000
"""Copies share no cached prompts."""


@dataclass(frozen=True)
class Traffic:
    """Requests in order of time, their targets, and the duration of the plan."""

    requests: Sequence[TraceRequest]
    seconds: float
    ttft_ms: float = 200.0
    itl_ms: float = 10.0
    source: str = "by chance"


@dataclass(frozen=True)
class Recorded:
    """A public trace: its file, the targets of its requests, copies, and its statistics (half an hour of it)."""

    file: str
    copies: int
    ttft_ms: float
    itl_ms: float
    per_minute: str
    """requests of each minute"""
    isl: Sequence[float]
    """quantiles 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99"""
    osl: Sequence[float]


QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
RECORDED = {
    # Prompts of 12,000 tokens on average take longer than 200 ms by themselves.
    "mooncake": Recorded(
        file="mooncake-conversation.jsonl",
        copies=3,
        ttft_ms=4000,
        itl_ms=25,
        per_minute=(
            "162 177 217 175 187 164 144 183 162 179 218 186 186 204 184 162 189 169 190 220 203 206 218 208 "
            "172 240 179 210 216 209"
        ),
        isl=(901, 2306, 6909, 15367, 27367, 39550, 85400),
        osl=(10, 156, 350, 472, 597, 698, 1118),
    ),
    "azure-conv": Recorded(
        file="azure-2023-conversation.csv",
        copies=8,
        ttft_ms=200,
        itl_ms=10,
        per_minute=(
            "191 265 329 353 307 273 268 261 322 298 301 302 345 326 283 279 280 308 343 351 351 343 408 396 "
            "386 398 432 480 476 453"
        ),
        isl=(181, 396, 1020, 1189, 2734, 4083, 4142),
        osl=(41, 85, 129, 395, 424, 451, 601),
    ),
    "azure-code": Recorded(
        file="azure-2023-code.csv",
        copies=4,
        ttft_ms=400,
        itl_ms=10,
        per_minute=(
            "63 0 0 531 187 130 15 42 38 476 421 63 0 0 632 299 0 20 396 315 116 78 306 447 252 34 128 111 406 234"
        ),
        isl=(75, 578, 1469, 2744, 5187, 7303, 7436),
        osl=(6, 9, 13, 24, 55, 90, 251),
    ),
}
MADE = ("sine", "ladder", "bursts", "day", "office")
KINDS = (*MADE, *RECORDED)


def traffic(kind: str, seed: int) -> Traffic:
    """Traffic of a kind; KeyError if the name is unknown."""
    match kind:
        case "sine":
            made = traces.sine(low=5, high=45, period=600, seconds=HALF_HOUR, isl=3000, osl=300, seed=seed)
            return Traffic(made, HALF_HOUR)
        case "ladder":
            # The reference's end-to-end ladder, with steps longer than the longest start-up; the gap is unchanged.
            steps = ((8.0, 450.0), (0.0, 30.0), (18.0, 720.0))
            return Traffic(traces.ladder(steps=steps, isl=4000, osl=150, seed=seed), 1200.0)
        case "bursts":
            made = traces.bursts(low=8, high=30, every=360, length=120, seconds=HALF_HOUR, isl=3000, osl=300, seed=seed)
            return Traffic(made, HALF_HOUR)
        case "day":
            return _day(((1800.0, 3.0, 30.0, 3600.0), (6300.0, 3.0, 18.0, 900.0)), seed)
        case "office":
            return _day(((3600.0, 2.0, 24.0, 5400.0),), seed)
    return _recorded(RECORDED[kind], seed)


def _day(peaks: Sequence[tuple[float, float, float, float]], seed: int) -> Traffic:
    """Hills of (middle second, low, high, width in seconds), each one wave of a cosine, as a day's load compressed."""

    def rate(at: float) -> float:
        return max(
            low + (high - low) * (1 + cos(2 * pi * (at - middle) / width)) / 2 if abs(at - middle) < width / 2 else low
            for middle, low, high, width in peaks
        )

    highest = max(high for _, _, high, _ in peaks)
    return Traffic(traces.at_rate(rate, TWO_HOURS, 3000, 300, highest=highest, seed=seed), TWO_HOURS)


def _recorded(trace: Recorded, seed: int) -> Traffic:
    file, random = Path(os.environ.get(TRACES_VARIABLE, TRACES)) / trace.file, Random(seed)
    result, source = (_read(file), "recorded") if file.is_file() else (_rebuilt(trace, seed), "rebuilt from statistics")
    requests = [
        TraceRequest(
            min(max(0.0, request.at + (random.uniform(-APART, APART) if copy else 0.0)), HALF_HOUR),
            request.isl,
            request.osl,
            tuple(block + copy * COPY_BLOCKS for block in request.blocks),
        )
        for copy in range(trace.copies)
        for request in result
    ]
    requests.sort(key=lambda request: request.at)
    return Traffic(requests, HALF_HOUR, trace.ttft_ms, trace.itl_ms, f"{source}, {trace.copies} times")


@cache
def _read(file: Path) -> Sequence[TraceRequest]:
    """The first half hour of a trace."""
    lines = file.read_text(encoding="utf-8").splitlines()
    if file.suffix == ".jsonl":
        results = [
            TraceRequest(
                each["timestamp"] / 1000, each["input_length"], max(1, each["output_length"]), tuple(each["hash_ids"])
            )
            for each in map(json.loads, lines)
        ]
    else:
        rows = list(csv.DictReader(lines))
        at = [datetime.fromisoformat(row["TIMESTAMP"][:26]) for row in rows]
        results = [
            TraceRequest((when - at[0]).total_seconds(), int(row["ContextTokens"]), max(1, int(row["GeneratedTokens"])))
            for when, row in zip(at, rows, strict=True)
        ]
    return [request for request in results if request.at < HALF_HOUR]


def _rebuilt(trace: Recorded, seed: int) -> Sequence[TraceRequest]:
    """As many requests in each minute, at random times, with lengths distributed as the trace's."""
    random = Random(1000 + seed)
    isl, osl = _lengths(trace.isl, random), _lengths(trace.osl, random)
    return [
        TraceRequest(60 * minute + random.uniform(0, 60), isl(), osl())
        for minute, count in enumerate(map(int, trace.per_minute.split()))
        for _ in range(count)
    ]


def _lengths(quantiles: Sequence[float], random: Random) -> Callable[[], int]:
    values = (max(1.0, quantiles[0] / 2), *quantiles)
    return lambda: max(1, int(np.interp(random.random(), QUANTILES, values)))
