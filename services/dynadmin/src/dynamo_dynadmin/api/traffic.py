"""The traffic in a graph's decisions, as steps of a replay. Pure.

A decision contains the rate and lengths of requests. The planner reports decisions, not all observations: the traffic
of a decision is assumed until the next one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

#: Seconds for which the newest decision is assumed to hold, so that a replay of the current traffic is not empty.
LAST_HOLDS = 600.0
#: A higher rate is an error of its source. Requests a second.
HIGHEST = 10_000.0
#: Requests of one replay: about a minute of CPU time.
MOST_REQUESTS = 100_000
#: Assumed lengths if they are unknown. Tokens.
ISL, OSL = 3000, 300
#: Longer than any context. Tokens.
LONGEST = 1 << 20
MOST_STEPS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficStep:
    """A period with constant traffic."""

    rate: float
    """requests per second"""
    seconds: float
    isl: int
    osl: int

    @property
    def requests(self) -> float:
        """The expected number of requests."""
        return self.rate * self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTraffic:
    """The traffic, the initial replicas by pool, and the assumptions."""

    steps: tuple[TrafficStep, ...]
    replicas: Mapping[str, int]
    remarks: tuple[str, ...]


def observed(rows: Iterable[Mapping[str, Any]], seconds: float) -> ObservedTraffic | None:
    """The traffic of the last `seconds`, up to ten minutes after the newest decision; None if no decision has
    traffic.
    """
    points = [
        (at, row) for row in rows if (at := _time(row)) is not None and _number(row, "requestsPerSecond", 0) is not None
    ]
    points.sort(key=lambda point: point[0])
    if not points:
        return None
    end = points[-1][0] + timedelta(seconds=LAST_HOLDS)
    begin = end - timedelta(seconds=seconds)
    ends = [*(at for at, _ in points[1:]), end]
    spans = [
        (max(at, begin), until, row) for (at, row), until in zip(points, ends, strict=True) if until > max(at, begin)
    ]
    older, spans = spans[:-MOST_STEPS], spans[-MOST_STEPS:]
    isl, osl = _mean(spans, "isl"), _mean(spans, "osl")
    remarks = []
    if isl is None or osl is None:
        remarks.append(
            f"no decision has the lengths of requests: {isl or ISL} input and {osl or OSL} output tokens are assumed"
        )
    steps = [
        TrafficStep(
            rate=min(_number(row, "requestsPerSecond", 0) or 0.0, HIGHEST),
            seconds=(until - at).total_seconds(),
            isl=round(_number(row, "isl", 1) or isl or ISL),
            osl=round(_number(row, "osl", 1) or osl or OSL),
        )
        for at, until, row in spans
    ]
    kept = bounded(steps)
    shown = end - timedelta(seconds=sum(each.seconds for each in kept))
    holds = f"the traffic of a decision lasts until the next decision, of the newest decision for {LAST_HOLDS:.0f} s"
    remarks.insert(0, f"traffic from {_text(shown)} to {_text(end)}; {holds}")
    is_bounded = len(kept) < len(steps) or kept[0] != steps[0]
    if is_bounded or older:
        limit = f"{MOST_REQUESTS:,} requests" if is_bounded else f"the traffic of {MOST_STEPS} decisions"
        remarks.append(f"only the last {sum(each.seconds for each in kept):.0f} s: a replay has {limit} at most")
    current = spans[-len(kept)][2].get("current") or {}
    replicas = {str(pool): int(count) for pool, count in current.items() if isinstance(count, int) and count > 0}
    return ObservedTraffic(steps=tuple(kept), replicas=replicas, remarks=tuple(remarks))


def bounded(steps: Sequence[TrafficStep]) -> list[TrafficStep]:
    """The newest steps with at most MOST_REQUESTS requests together; the oldest of them may be shortened."""
    kept: list[TrafficStep] = []
    room = float(MOST_REQUESTS)
    for each in reversed(steps):
        if each.requests > room:
            if (seconds := room / each.rate) >= 1:
                kept.append(TrafficStep(rate=each.rate, seconds=seconds, isl=each.isl, osl=each.osl))
            break
        kept.append(each)
        room -= each.requests
    return kept[::-1]


def _mean(spans: Iterable[tuple[datetime, datetime, Mapping[str, Any]]], name: str) -> int | None:
    values = [value for *_, row in spans if (value := _number(row, name, 1)) is not None]
    return round(sum(values) / len(values)) if values else None


def _number(row: Mapping[str, Any], name: str, least: float) -> float | None:
    value = (row.get("inputs") or {}).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < least:
        return None
    return min(float(value), LONGEST)


def _time(row: Mapping[str, Any]) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(row.get("time")))
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
