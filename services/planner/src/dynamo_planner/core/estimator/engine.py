"""How long one engine's iterations take: prompts, decode tokens, or both in one iteration.

Prefill depends on the tokens of an iteration. Decode depends on sequences (each costs its share of the matrix
multiplications) and on tokens in the KV cache (each is read for every generated token); the context length is the
second divided by the first.
"""

from collections.abc import Iterable, Iterator
from math import isfinite

from dynamo_planner.core.estimator.model import LEAST_SAMPLES, LatencyModel
from dynamo_planner.core.observation import ForwardPass, Pool
from dynamo_planner.core.profile import Profile

PREFILL_KNOTS = (40,)
DECODE_KNOTS = (16, 8)
"""Knots for sequences are at the batch sizes that kernels are tuned for, those for cached tokens where memory bandwidth
saturates.
"""


def _engines(passes: Iterable[ForwardPass]) -> Iterator[list[ForwardPass]]:
    """Groups the passes of the data parallel ranks of one engine: the ranks compute in parallel, each a part of the
    sequences.
    """
    engines: list[dict[int, ForwardPass]] = []
    current: dict[tuple[Pool, str], dict[int, ForwardPass]] = {}
    for forward in passes:
        ranks = current.get((forward.pool, forward.worker_id))
        if ranks is None or forward.dp_rank in ranks:
            ranks = current[forward.pool, forward.worker_id] = {}
            engines.append(ranks)
        ranks[forward.dp_rank] = forward
    return (list(ranks.values()) for ranks in engines)


class EngineEstimator:
    """Estimates the milliseconds that an engine of a graph takes. Starts with a profile, or empty, and learns from
    forward passes.
    """

    def __init__(self, profile: Profile | None = None, *, least_samples: int = LEAST_SAMPLES) -> None:
        profile = profile or Profile()
        fastest = min((point.itl for point in profile.decode), default=None)
        self.prefill = LatencyModel(
            [((point.isl,), point.ttft) for point in profile.prefill],
            knots=PREFILL_KNOTS,
            # Even the shortest prompt reads the weights once, like a single token.
            floor=fastest,
            least_samples=least_samples,
        )
        self.decode = LatencyModel(
            [((max(1.0, p.kv_tokens / p.context), p.kv_tokens), p.itl) for p in profile.decode],
            knots=DECODE_KNOTS,
            least_samples=least_samples,
        )
        self.max_kv_tokens = profile.max_kv_tokens

    def prefill_ms(self, tokens: float, chunk: int | None = None) -> float:
        """Time for prompt tokens, in chunks of at most `chunk`; ValueError before anything is known."""
        tokens = max(0.0, tokens)
        if chunk is None or tokens <= chunk:
            return self.prefill.at(tokens)
        whole, rest = divmod(tokens, chunk)
        return whole * self.prefill.at(float(chunk)) + (self.prefill.at(rest) if rest else 0.0)

    def decode_ms(self, batch: float, context: float) -> float:
        """Time of a token in a batch of `batch` sequences of mean length `context`; ValueError without data."""
        batch = max(1.0, batch)
        return self.decode.at(batch, batch * context)

    def mixed_ms(self, prefill_tokens: float, batch: float, context: float) -> float:
        """Time of an iteration with prompts and decode tokens; both share one read of the weights."""
        if prefill_tokens <= 0:
            return self.decode_ms(batch, context)
        prompts = self.prefill_ms(prefill_tokens)
        if batch <= 0:
            return prompts
        return prompts + self.decode_ms(batch, context) - self.shared_ms()

    def shared_ms(self) -> float:
        """The part of an iteration that prompts and decode tokens share."""
        return min(self.prefill.surface.base, self.decode.surface.base)

    def observe(self, passes: tuple[ForwardPass, ...]) -> None:
        """Learn from iterations that computed one kind of work; heartbeats of idle engines contain no information."""
        for ranks in _engines(each for each in passes if each.wall_time > 0 and isfinite(1000 * each.wall_time)):
            milliseconds = 1000 * max(rank.wall_time for rank in ranks)
            # Sequences and tokens of a profile cover all ranks; a prompt is computed by one rank.
            prompts = float(max(rank.scheduled.sum_prefill_tokens for rank in ranks))
            sequences = float(sum(rank.scheduled.num_decode_requests for rank in ranks))
            kv = float(sum(rank.scheduled.sum_decode_kv_tokens for rank in ranks))
            if prompts > 0 and sequences == 0:
                self.prefill.observe((prompts,), milliseconds)
            elif sequences > 0 and prompts == 0 and ranks[0].pool is Pool.DECODE:
                self.decode.observe((sequences, max(kv, 1.0)), milliseconds)
            elif sequences > 0 and prompts > 0:
                self._observe_mixed(prompts, sequences, kv, milliseconds)

    def _observe_mixed(self, prompts: float, sequences: float, kv: float, milliseconds: float) -> None:
        """Learn prefill from mixed iterations of engines that always have prompts, by subtracting the decode time."""
        if not self.prefill.ready or not self.decode.ready:
            return
        left = milliseconds - self.decode.at(sequences, max(kv, 1.0)) + self.shared_ms()
        if left > self.shared_ms():
            self.prefill.observe((prompts,), left)
