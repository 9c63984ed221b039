"""An engine that does both: prompts and tokens share its iterations."""

from dynamo_planner.core.observing import EngineCapabilities, ForwardPass
from dynamo_planner.core.reference.averages import MovingAverage
from dynamo_planner.core.reference.prefill import EngineCapacity, chunked
from dynamo_planner.core.reference.regression import IterationModel

UNKNOWN_CACHE_BATCH = 1024
"""Sequences that an engine is taken to hold when nothing is known of its KV cache."""


class AggregatedEngine:
    """wall = f(prefill tokens, decode KV tokens of the iteration)."""

    def __init__(self, *, limit: int, buckets: int, least: int) -> None:
        self.model = IterationModel(axes=2, limit=limit, buckets=buckets, least=least)
        self._isl = MovingAverage(limit)
        self._length = MovingAverage(limit)
        self._prefill_tokens = MovingAverage(limit)

    @property
    def ready(self) -> bool:
        """Whether it may be asked for estimates."""
        return self.model.ready

    def learn(self, forward: ForwardPass) -> None:
        """Learn an iteration; of an idle engine only what it averages."""
        work = forward.scheduled
        if work.num_prefill_requests > 0:
            self._isl.add(work.sum_prefill_tokens / work.num_prefill_requests)
        if work.num_decode_requests > 0:
            self._length.add(work.sum_decode_kv_tokens / work.num_decode_requests)
        self._prefill_tokens.add(work.sum_prefill_tokens)
        if forward.wall_time > 0 and work.sum_prefill_tokens + work.sum_decode_kv_tokens > 0:
            self.model.learn((float(work.sum_prefill_tokens), float(work.sum_decode_kv_tokens)), forward.wall_time)

    def ttft(self, queued_tokens: float, decode_kv: float, *, batched_tokens: int, share: float) -> float:
        """Seconds until one more average prompt has its first token, while `decode_kv` tokens are in decoding."""
        return self._ttft((queued_tokens + self._isl.value) * share, decode_kv, batched_tokens)

    def itl(self, kv_tokens: float) -> float:
        """Seconds of an iteration with the usual prefill work and one more average sequence."""
        return self.model.wall(self._prefill_tokens.value, kv_tokens + self._length.value)

    def capacity(
        self, isl: float, osl: float, *, share: float, ttft_target: float, itl_target: float, able: EngineCapabilities
    ) -> EngineCapacity | None:
        """The largest batch that keeps both targets (seconds), a single sequence where none does.

        In balance, an engine that decodes `bs` sequences of `osl` tokens begins `bs / osl` prompts an iteration.
        None where the engine's card does not say how many tokens an iteration may have.
        """
        if able.max_num_batched_tokens is None:
            return None
        best: EngineCapacity | None = None
        for batch in range(1, self._largest(isl, osl, share, able, able.max_num_batched_tokens) + 1):
            kv = batch * (isl + osl / 2)
            wall = self.model.wall(min(batch * isl * share / osl, able.max_num_batched_tokens), kv)
            queued = int(min(batch * isl / osl, able.max_num_batched_tokens))
            ttft = self.ttft(queued, kv, batched_tokens=able.max_num_batched_tokens, share=share)
            kept = wall <= itl_target and ttft <= ttft_target
            if best is None or kept:
                best = EngineCapacity(requests_per_second=batch / (osl * wall), ttft=ttft, itl=wall, batch=batch)
            if not kept:
                break
        return best

    def _ttft(self, work: float, decode_kv: float, batched_tokens: int) -> float:
        return chunked(work, batched_tokens, lambda tokens: self.model.wall(tokens, decode_kv))

    def _largest(self, isl: float, osl: float, share: float, able: EngineCapabilities, batched_tokens: int) -> int:
        cached = int(able.max_kv_tokens / (isl + osl / 2)) if able.max_kv_tokens else UNKNOWN_CACHE_BATCH
        # A batch leaves room for as many prefill tokens an iteration as its own sequences need: isl / (room) <= osl.
        balanced = int(batched_tokens - isl * share / osl)
        return max(1, min(cached, able.max_num_seqs or cached, batched_tokens - 1, balanced))
