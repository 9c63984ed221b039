"""Traces of requests: the mooncake format, and generators of typical shapes for judging planners.

A record is one line of JSON: {timestamp ms, input_length, output_length, hash_ids}. hash_ids name blocks of the prompt;
prompts that begin with the same blocks share their cached tokens.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import cos, pi
from random import Random

from dynamo_shared.api.field_errors import shown

BLOCK_TOKENS = 512
"""Tokens per hash id (mooncake's traces)."""
LONGEST = 31 * 24 * 3600 * 1000
"""Maximum milliseconds of a trace: a month; times since 1970, or in the wrong unit, would be simulated almost without
end.
"""

MOST_GENERATED = 1_000_000
"""Maximum requests of a generated trace, about 100 MB: a higher rate, or a longer time, is probably a mistake."""

LARGEST = 1e15
"""Largest number in a record: milliseconds since 1970 are smaller."""


class TraceError(ValueError):
    """A trace that cannot be replayed; the message names the file, the line and the problem."""


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request of a trace."""

    at: float
    """seconds from the beginning"""
    isl: int
    osl: int
    blocks: tuple[int, ...] = ()


def read_trace(lines: Iterable[str], source: str) -> list[TraceRequest]:
    """Requests in order of time; TraceError names the invalid line, or reports an empty trace."""
    requests = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            requests.append(_request(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise TraceError(f"{source}, line {number}: {error}") from error
        except RecursionError as error:
            raise TraceError(f"{source}, line {number}: nested too deeply; each line must be like {EXAMPLE}") from error
    if not requests:
        raise TraceError(f"{source}: contains no request; each line must be like {EXAMPLE}")
    requests.sort(key=lambda request: request.at)
    return requests


EXAMPLE = '{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}'


def _request(record: object) -> TraceRequest:
    if not isinstance(record, dict):
        raise TypeError(f"not an object; each line must be like {EXAMPLE}")
    blocks = record.get("hash_ids") or ()
    if not isinstance(blocks, list | tuple) or not all(isinstance(block, int) for block in blocks):
        raise TypeError("hash_ids is not a list of integers")
    at = _number(record, "timestamp", least=0)
    if at > LONGEST:
        raise ValueError(
            f"timestamp is {at:.0f}; it must be milliseconds from the trace's beginning, {LONGEST} at most"
        )
    return TraceRequest(
        at=at / 1000,
        isl=int(_number(record, "input_length", least=1)),
        osl=int(_number(record, "output_length", least=1)),
        blocks=tuple(blocks),
    )


def _number(record: dict[str, object], key: str, least: float) -> float:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= LARGEST:
        raise ValueError(f"{key} is {shown(value)}; it must be a number from {least:g} to {LARGEST:g}, as in {EXAMPLE}")
    return float(value)


def at_rate(
    rate: Callable[[float], float], seconds: float, isl: int, osl: int, *, highest: float, seed: int
) -> list[TraceRequest]:
    """Random arrivals (Poisson) at a variable rate, requests a second; never above `highest`. TraceError if they may
    be too many.
    """
    _bounded(highest * seconds, "requests")
    random, at, requests = Random(seed), 0.0, []
    while highest > 0:
        at += random.expovariate(highest)
        if at >= seconds:
            break
        if random.random() * highest < rate(at):
            requests.append(TraceRequest(at, isl, osl))
    return requests


def _bounded(count: float, what: str) -> None:
    if count > MOST_GENERATED:
        raise TraceError(
            f"may have {count:,.0f} {what}, but a generated trace has at most {MOST_GENERATED:,}; use lower rates or "
            "less time"
        )


def constant(*, rate: float, seconds: float, isl: int, osl: int, seed: int = 0) -> list[TraceRequest]:
    """A constant rate."""
    return at_rate(lambda _: rate, seconds, isl, osl, highest=rate, seed=seed)


def sine(
    *, low: float, high: float, period: float, seconds: float, isl: int, osl: int, seed: int = 0
) -> list[TraceRequest]:
    """From `low` at the beginning to `high` after half a period and back (planner.md, section c 1)."""
    middle, swing = (low + high) / 2, (high - low) / 2
    return at_rate(lambda at: middle - swing * cos(2 * pi * at / period), seconds, isl, osl, highest=high, seed=seed)


def ladder(*, steps: Iterable[tuple[float, float]], isl: int, osl: int, seed: int = 0) -> list[TraceRequest]:
    """Consecutive rates: (requests a second, seconds)."""
    ends: list[tuple[float, float]] = []
    for rate, seconds in steps:
        ends.append((rate, (ends[-1][1] if ends else 0.0) + seconds))

    def rate_at(at: float) -> float:
        return next((rate for rate, end in ends if at < end), 0.0)

    return at_rate(rate_at, ends[-1][1], isl, osl, highest=max(rate for rate, _ in ends), seed=seed)


def observed(steps: Iterable[tuple[float, float, int, int]]) -> list[TraceRequest]:
    """Observed traffic, as steps: (requests a second, seconds, input tokens, output tokens)."""
    requests: list[TraceRequest] = []
    begin = 0.0
    for number, (rate, seconds, isl, osl) in enumerate(steps):
        made = constant(rate=rate, seconds=seconds, isl=isl, osl=osl, seed=number)
        requests += [replace(each, at=begin + each.at) for each in made]
        begin += seconds
    return requests


def bursts(
    *, low: float, high: float, every: float, length: float, seconds: float, isl: int, osl: int, seed: int = 0
) -> list[TraceRequest]:
    """`low` with random bursts of `high` that last about `length` s and begin about every `every` s."""
    _bounded(seconds / (every + length), "bursts")
    random, at, spans = Random(seed + 1), 0.0, []
    while at < seconds:
        start = at + random.uniform(0.5, 1.5) * every
        at = start + random.uniform(0.5, 1.5) * length
        spans.append((start, at))

    def rate_at(when: float) -> float:
        return high if any(start <= when < end for start, end in spans) else low

    return at_rate(rate_at, seconds, isl, osl, highest=high, seed=seed)
