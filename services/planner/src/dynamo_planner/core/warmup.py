"""Converts a trace of requests (mooncake JSONL) to the load of intervals, from which predictors learn before the first
request.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import ReadLimits

from dynamo_planner.core.observation import PastTraffic, Traffic

LONGEST = 20_000
"""Intervals that a trace may span: six weeks of three-minute intervals. Times in the wrong unit would otherwise exhaust
memory.
"""

LARGEST = 1e21
"""Milliseconds or tokens of one record: far above real values, and sums of millions of them are still finite."""
_RECORD = ReadLimits(64 * 1024, 10_000, 8)


class WarmupError(ValueError):
    """An unusable trace; the message names the line and the allowed values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The requests of one interval; the lengths are means in tokens, 0 without requests."""

    requests: int
    isl: float
    osl: float


def intervals(lines: Iterable[str], seconds: float, source: str = "trace") -> list[Interval]:
    """The intervals of a trace, beginning at its first request. A record has timestamp (ms), input_length and
    output_length.
    """
    counts: dict[int, tuple[int, int, int]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        at, isl, osl = _record(line, f"{source}, line {number}")
        slot = int(at // (seconds * 1000))
        count, inputs, outputs = counts.get(slot, (0, 0, 0))
        counts[slot] = (count + 1, inputs + isl, outputs + osl)
    if not counts:
        return []
    first, last = min(counts), max(counts)
    if last - first >= LONGEST:
        raise WarmupError(
            f"{source}: spans {last - first + 1} intervals of {seconds:g} s, but only {LONGEST} are allowed; "
            "is timestamp in milliseconds?"
        )
    return [_interval(counts.get(slot, (0, 0, 0))) for slot in range(first, last + 1)]


def as_past(trace: Sequence[Interval], seconds: float) -> tuple[PastTraffic, ...]:
    """A trace with intervals of `seconds`, as the traffic just before planning began, oldest first."""
    return tuple(
        PastTraffic(
            ago=(len(trace) - 1 - index) * seconds,
            traffic=Traffic(duration=seconds, requests=each.requests, isl=each.isl, osl=each.osl),
        )
        for index, each in enumerate(trace)
    )


def _interval(sums: tuple[int, int, int]) -> Interval:
    count, inputs, outputs = sums
    return Interval(requests=count, isl=inputs / max(count, 1), osl=outputs / max(count, 1))


def _record(line: str, where: str) -> tuple[float, int, int]:
    try:
        record = json_text.decode(line, _RECORD)
    except json_text.InvalidJson as error:
        raise WarmupError(f"{where}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise WarmupError(
            f"{where}: a JSON {type(record).__name__}; it must be an object with timestamp, input_length, output_length"
        )
    at, isl, osl = (_number(record, key, where) for key in ("timestamp", "input_length", "output_length"))
    return at, int(isl), int(osl)


def _number(record: dict[str, object], key: str, where: str) -> float:
    value = record.get(key)
    if not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value <= LARGEST:
        return float(value)
    raise WarmupError(f"{where}: {key} is {shown(value)}; it must be a number that is not negative")
