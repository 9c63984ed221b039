"""The engine models of each mode: prefill, decode, and aggregated."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from math import ceil
from typing import NamedTuple

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig

from dynamo_planner.core.estimator.capacity import largest
from dynamo_planner.core.observation import EngineCapabilities, EngineWork, ForwardPass, Pool, hit_rate
from dynamo_planner.core.profile import Profile
from dynamo_planner.core.reference.regression import IterationModel


class EngineCapacity(NamedTuple):
    """The capacity of one engine."""

    requests_per_second: float
    ttft: float = 0.0
    """seconds; 0 for an engine that computes no prompts"""
    itl: float = 0.0
    """seconds; 0 for an engine that does not decode"""
    batch: int = 1
    """concurrent sequences"""


class PrefillEngine:
    """wall = f(prefill tokens of the iteration)."""

    def __init__(self, *, limit: int, buckets: int, least: int) -> None:
        self.model = IterationModel(axes=1, limit=limit, buckets=buckets, least=least)
        self._isl = MovingAverage(limit)

    @property
    def ready(self) -> bool:
        """Whether the model can estimate."""
        return self.model.ready

    @property
    def average_isl(self) -> float:
        """Mean tokens of a prompt."""
        return self._isl.value

    def learn(self, forward: ForwardPass) -> None:
        """Learn an iteration; from an idle engine, only the averages."""
        work = forward.scheduled
        if work.num_prefill_requests > 0:
            self._isl.add(work.sum_prefill_tokens / work.num_prefill_requests)
        if forward.wall_time > 0 and work.sum_prefill_tokens > 0:
            self.model.learn((float(work.sum_prefill_tokens),), forward.wall_time)

    def ttft(self, queued_tokens: float, *, batched_tokens: int, share: float) -> float:
        """Seconds until an additional average prompt behind `queued_tokens` has its first token.

        `share` is the part of the work that the KV cache leaves; it is split into iterations of at most
        `batched_tokens`.
        """
        work = (queued_tokens + self.average_isl) * share
        return chunked(work, batched_tokens, self.model.wall)

    def capacity(self, isl: float, *, batched_tokens: int | None, share: float) -> EngineCapacity:
        """Prompts of `isl` tokens, one after another; reported unchanged even if a target is missed."""
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


class MovingAverage:
    """Mean of the last values; zeros before the first other value are ignored. 0 without values."""

    def __init__(self, window: int) -> None:
        self._values: deque[float] = deque(maxlen=window)

    def add(self, value: float) -> None:
        """Add a value."""
        if value != 0 or self._values:
            self._values.append(value)

    @property
    def value(self) -> float:
        """The mean."""
        return sum(self._values) / len(self._values) if self._values else 0.0


def prefill_share(rate: float | None) -> float:
    """The share of prefill work that remains with a KV-cache hit rate, 0.05 to 1. An unknown rate counts as 0."""
    return 1.0 - hit_rate(rate)


UNKNOWN_CACHE_BATCH = 256
"""Assumed capacity of an engine in sequences if nothing is known about its KV cache."""
REQUESTS = 0
"""Index of the feature whose coefficient may be fitted as negative: requests and tokens are correlated."""


class DecodeEngine:
    """wall = f(decode requests, decode KV tokens of the iteration)."""

    def __init__(self, *, limit: int, buckets: int, least: int) -> None:
        self.model = IterationModel(axes=2, limit=limit, buckets=buckets, least=least, clipped=frozenset({REQUESTS}))
        self._length = MovingAverage(limit)
        self._requests = MovingAverage(limit)

    @property
    def ready(self) -> bool:
        """Whether the model can estimate."""
        return self.model.ready

    @property
    def average_length(self) -> float:
        """Mean KV tokens of a sequence."""
        return self._length.value

    def learn(self, forward: ForwardPass) -> None:
        """Learn an iteration; from an idle engine, only the averages."""
        work = forward.scheduled
        self._requests.add(work.num_decode_requests)
        if work.num_decode_requests > 0:
            self._length.add(work.sum_decode_kv_tokens / work.num_decode_requests)
        if forward.wall_time > 0 and work.num_decode_requests > 0:
            self.model.learn((float(work.num_decode_requests), float(work.sum_decode_kv_tokens)), forward.wall_time)

    def itl(self, kv_tokens: float) -> float:
        """Seconds of an iteration with one additional average sequence and `kv_tokens` in the cache."""
        return self.model.wall(self._requests.value + 1, kv_tokens + self.average_length)

    def capacity(
        self, context: float, osl: float, *, target: float, most_kv: int | None, most_seqs: int | None
    ) -> EngineCapacity:
        """The largest batch of sequences of `context` tokens with an iteration within `target` seconds; a single
        sequence if even that misses the target. A request takes `osl` iterations (Little's law).
        """
        most = self._largest(context, most_kv, most_seqs)
        batch = max(1, largest(most, lambda batch: self.model.wall(batch, batch * context) <= target))
        wall = self.model.wall(batch, batch * context)
        return EngineCapacity(requests_per_second=batch / (osl * wall), itl=wall, batch=batch)

    def _largest(self, context: float, most_kv: int | None, most_seqs: int | None) -> int:
        measured = max((sample.features[1] for sample in self.model.samples), default=0.0)
        fits = int((most_kv or measured) / context) if (most_kv or measured) else UNKNOWN_CACHE_BATCH
        return max(1, min(fits, most_seqs) if most_seqs else fits)


UNKNOWN_AGGREGATED_BATCH = 1024
"""Assumed capacity of an engine in sequences if nothing is known about its KV cache."""


class AggregatedEngine:
    """wall = f(prefill tokens, decode KV tokens of the iteration)."""

    def __init__(self, *, limit: int, buckets: int, least: int) -> None:
        self.model = IterationModel(axes=2, limit=limit, buckets=buckets, least=least)
        self._isl = MovingAverage(limit)
        self._length = MovingAverage(limit)
        self._prefill_tokens = MovingAverage(limit)

    @property
    def ready(self) -> bool:
        """Whether the model can estimate."""
        return self.model.ready

    def learn(self, forward: ForwardPass) -> None:
        """Learn an iteration; from an idle engine, only the averages."""
        work = forward.scheduled
        if work.num_prefill_requests > 0:
            self._isl.add(work.sum_prefill_tokens / work.num_prefill_requests)
        if work.num_decode_requests > 0:
            self._length.add(work.sum_decode_kv_tokens / work.num_decode_requests)
        self._prefill_tokens.add(work.sum_prefill_tokens)
        if forward.wall_time > 0 and work.sum_prefill_tokens + work.sum_decode_kv_tokens > 0:
            self.model.learn((float(work.sum_prefill_tokens), float(work.sum_decode_kv_tokens)), forward.wall_time)

    def ttft(self, queued_tokens: float, decode_kv: float, *, batched_tokens: int, share: float) -> float:
        """Seconds until an additional average prompt has its first token, while sequences with `decode_kv` tokens are
        decoded.
        """
        return self._ttft((queued_tokens + self._isl.value) * share, decode_kv, batched_tokens)

    def itl(self, kv_tokens: float) -> float:
        """Seconds of an iteration with the usual prefill work and one additional average sequence."""
        return self.model.wall(self._prefill_tokens.value, kv_tokens + self._length.value)

    def capacity(
        self, isl: float, osl: float, *, share: float, ttft_target: float, itl_target: float, able: EngineCapabilities
    ) -> EngineCapacity | None:
        """The largest batch that keeps both targets (seconds), a single sequence if none does.

        In equilibrium, an engine that decodes `bs` sequences of `osl` tokens starts `bs / osl` prompts per iteration.
        None if the engine's model card does not state the maximum tokens of an iteration.
        """
        if able.max_num_batched_tokens is None:
            return None
        batched = able.max_num_batched_tokens

        def of(batch: int) -> EngineCapacity:
            kv = batch * (isl + osl / 2)
            wall = self.model.wall(min(batch * isl * share / osl, batched), kv)
            ttft = self.ttft(int(min(batch * isl / osl, batched)), kv, batched_tokens=batched, share=share)
            return EngineCapacity(requests_per_second=batch / (osl * wall), ttft=ttft, itl=wall, batch=batch)

        def keeps(batch: int) -> bool:
            capacity = of(batch)
            return capacity.itl <= itl_target and capacity.ttft <= ttft_target

        return of(max(1, largest(self._largest(isl, osl, share, able, batched), keeps)))

    def _ttft(self, work: float, decode_kv: float, batched_tokens: int) -> float:
        return chunked(work, batched_tokens, lambda tokens: self.model.wall(tokens, decode_kv))

    def _largest(self, isl: float, osl: float, share: float, able: EngineCapabilities, batched_tokens: int) -> int:
        cached = int(able.max_kv_tokens / (isl + osl / 2)) if able.max_kv_tokens else UNKNOWN_AGGREGATED_BATCH
        # A batch must leave room for as many prefill tokens per iteration as its own sequences need: isl / (room) <=
        # osl.
        balanced = int(batched_tokens - isl * share / osl)
        return max(1, min(cached, able.max_num_seqs or cached, batched_tokens - 1, balanced))


MOST_SAMPLES = 1024
"""Measured iterations kept per engine, regardless of the configuration: each tick fits all of them."""


class Engines:
    """One model per role; models without a pool in the mode learn nothing."""

    def __init__(self, config: PlannerConfig, profile: Profile | None = None) -> None:
        size = {
            "limit": min(config.max_num_fpm_samples, MOST_SAMPLES),
            "buckets": config.fpm_sample_bucket_size,
            "least": config.load_min_observations,
        }
        self._mode = config.mode
        self.prefill = PrefillEngine(**size)
        self.decode = DecodeEngine(**size)
        self.aggregated = AggregatedEngine(**size)
        if profile is not None:
            self.learn(forward_passes(profile))

    def learn(self, passes: Iterable[ForwardPass]) -> None:
        """Learn iterations."""
        for each in passes:
            if self._mode is Mode.AGG:
                self.aggregated.learn(each)
            elif each.pool is Pool.PREFILL:
                self.prefill.learn(each)
            else:
                self.decode.learn(each)


def forward_passes(profile: Profile) -> Iterator[ForwardPass]:
    """Each prefill point becomes an iteration with one prompt, each decode point an iteration of its batch.

    An aggregated engine learns from all of them: iterations with only prompts, and with only decoding.
    """
    for prompt in profile.prefill:
        yield ForwardPass(
            pool=Pool.PREFILL,
            worker_id="profile",
            wall_time=prompt.ttft / 1000,
            scheduled=EngineWork(num_prefill_requests=1, sum_prefill_tokens=round(prompt.isl)),
        )
    for point in profile.decode:
        yield ForwardPass(
            pool=Pool.DECODE,
            worker_id="profile",
            wall_time=point.itl / 1000,
            scheduled=EngineWork(num_decode_requests=int(point.batch), sum_decode_kv_tokens=round(point.kv_tokens)),
        )
