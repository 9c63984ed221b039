"""An engine that makes tokens: its inter-token latency, and the requests that it is able to serve."""

from dynamo_planner.core.observing import ForwardPass
from dynamo_planner.core.reference.averages import MovingAverage
from dynamo_planner.core.reference.prefill import EngineCapacity
from dynamo_planner.core.reference.regression import IterationModel

UNKNOWN_CACHE_BATCH = 256
"""Sequences that an engine is taken to hold when nothing is known of its KV cache."""
REQUESTS = 0
"""Index of the feature whose coefficient may come out negative: requests and tokens rise and fall together."""


class DecodeEngine:
    """wall = f(decode requests, decode KV tokens of the iteration)."""

    def __init__(self, *, limit: int, buckets: int, least: int) -> None:
        self.model = IterationModel(axes=2, limit=limit, buckets=buckets, least=least, clipped=frozenset({REQUESTS}))
        self._length = MovingAverage(limit)
        self._requests = MovingAverage(limit)

    @property
    def ready(self) -> bool:
        """Whether it may be asked for estimates."""
        return self.model.ready

    @property
    def average_length(self) -> float:
        """Mean KV tokens of a sequence."""
        return self._length.value

    def learn(self, forward: ForwardPass) -> None:
        """Learn an iteration; of an idle engine only what it averages."""
        work = forward.scheduled
        self._requests.add(work.num_decode_requests)
        if work.num_decode_requests > 0:
            self._length.add(work.sum_decode_kv_tokens / work.num_decode_requests)
        if forward.wall_time > 0 and work.num_decode_requests > 0:
            self.model.learn((float(work.num_decode_requests), float(work.sum_decode_kv_tokens)), forward.wall_time)

    def itl(self, kv_tokens: float) -> float:
        """Seconds of an iteration with one more average sequence next to `kv_tokens` in the cache."""
        return self.model.wall(self._requests.value + 1, kv_tokens + self.average_length)

    def capacity(
        self, context: float, osl: float, *, target: float, most_kv: int | None, most_seqs: int | None
    ) -> EngineCapacity:
        """The largest batch of sequences of `context` tokens with an iteration within `target` seconds; one that misses it
        where even a single sequence does. A request takes `osl` iterations (Little's law).
        """
        low, high = 1, self._largest(context, most_kv, most_seqs)
        while low < high:
            middle = (low + high + 1) // 2
            if self.model.wall(middle, middle * context) <= target:
                low = middle
            else:
                high = middle - 1
        wall = self.model.wall(low, low * context)
        return EngineCapacity(requests_per_second=low / (osl * wall), itl=wall, batch=low)

    def _largest(self, context: float, most_kv: int | None, most_seqs: int | None) -> int:
        measured = max((sample.features[1] for sample in self.model.samples), default=0.0)
        fits = int((most_kv or measured) / context) if (most_kv or measured) else UNKNOWN_CACHE_BATCH
        return max(1, min(fits, most_seqs) if most_seqs else fits)
