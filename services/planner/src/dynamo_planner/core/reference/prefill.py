"""An engine that computes prompts: its time to first token, and the requests that it is able to serve."""

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

from dynamo_planner.core.observing import ForwardPass
from dynamo_planner.core.reference.averages import MovingAverage
from dynamo_planner.core.reference.regression import IterationModel


class EngineCapacity(NamedTuple):
    """What one engine is able to serve."""

    requests_per_second: float
    ttft: float = 0.0
    """seconds; 0 for an engine that computes no prompts"""
    itl: float = 0.0
    """seconds; 0 for an engine that makes no tokens"""
    batch: int = 1
    """sequences at once"""


class PrefillEngine:
    """wall = f(prefill tokens of the iteration)."""

    def __init__(self, *, limit: int, buckets: int, least: int) -> None:
        self.model = IterationModel(axes=1, limit=limit, buckets=buckets, least=least)
        self._isl = MovingAverage(limit)

    @property
    def ready(self) -> bool:
        """Whether it may be asked for estimates."""
        return self.model.ready

    @property
    def average_isl(self) -> float:
        """Mean tokens of a prompt."""
        return self._isl.value

    def learn(self, forward: ForwardPass) -> None:
        """Learn an iteration; of an idle engine only what it averages."""
        work = forward.scheduled
        if work.num_prefill_requests > 0:
            self._isl.add(work.sum_prefill_tokens / work.num_prefill_requests)
        if forward.wall_time > 0 and work.sum_prefill_tokens > 0:
            self.model.learn((float(work.sum_prefill_tokens),), forward.wall_time)

    def ttft(self, queued_tokens: float, *, batched_tokens: int, share: float) -> float:
        """Seconds until one more average prompt behind `queued_tokens` has its first token.

        `share` is what the KV cache leaves of the work; the rest is cut into iterations of at most `batched_tokens`.
        """
        work = (queued_tokens + self.average_isl) * share
        return chunked(work, batched_tokens, self.model.wall)

    def capacity(self, isl: float, *, batched_tokens: int | None, share: float) -> EngineCapacity:
        """One prompt of `isl` tokens after the other; reported as it is, also where it misses any target."""
        work = isl * share
        whole = work if batched_tokens is None or work <= batched_tokens else float(batched_tokens)
        pieces = ceil(work / whole) if whole > 0 else 1
        seconds = (pieces - 1) * self.model.wall(whole) + self.model.wall(work - (pieces - 1) * whole)
        return EngineCapacity(requests_per_second=1 / seconds, ttft=seconds)


def chunked(work: float, batched_tokens: int, wall: Callable[[float], float]) -> float:
    """Seconds that prefill tokens take in iterations of at most `batched_tokens`."""
    full = int(work // batched_tokens)
    rest = work - full * batched_tokens
    seconds = full * wall(float(batched_tokens)) if full else 0.0
    return seconds + (wall(rest) if rest > 0 or not full else 0.0)
