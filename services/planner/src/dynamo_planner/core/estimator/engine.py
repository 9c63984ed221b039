"""What one engine takes for its iterations: prompts, tokens next to each other, or both at once.

Prefill depends on the tokens of an iteration. Decode depends on sequences (each costs its share of the matrices) and on tokens
in the KV cache (each is read for every token that is made); context length is the second by the first.
"""

from collections.abc import Iterable, Iterator
from math import isfinite

from dynamo_planner.core.estimator.model import LEAST_SAMPLES, LatencyModel
from dynamo_planner.core.observing import ForwardPass, Pool
from dynamo_planner.core.profile import Profile

PREFILL_KNOTS = (40,)
DECODE_KNOTS = (16, 8)
"""Sequences bend at the batch sizes that kernels are made for, tokens in the cache where they fill the memory's width."""


def _engines(passes: Iterable[ForwardPass]) -> Iterator[list[ForwardPass]]:
    """Passes of the data parallel ranks of one engine together: they compute side by side, each a part of its sequences."""
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
    """Milliseconds that an engine of a graph takes. Starts from a profile, or from nothing, and learns from forward passes."""

    def __init__(self, profile: Profile | None = None, *, least_samples: int = LEAST_SAMPLES) -> None:
        profile = profile or Profile()
        fastest = min((point.itl for point in profile.decode), default=None)
        self.prefill = LatencyModel(
            [((point.isl,), point.ttft) for point in profile.prefill],
            knots=PREFILL_KNOTS,
            # However short the prompt, the weights are read once, as they are for one token.
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
        """Time for so many prompt tokens, in pieces of at most `chunk`; ValueError before anything is known."""
        tokens = max(0.0, tokens)
        if chunk is None or tokens <= chunk:
            return self.prefill.at(tokens)
        whole, rest = divmod(tokens, chunk)
        return whole * self.prefill.at(float(chunk)) + (self.prefill.at(rest) if rest else 0.0)

    def decode_ms(self, batch: float, context: float) -> float:
        """Time of a token for each of `batch` sequences of mean length `context`; ValueError before anything is known."""
        batch = max(1.0, batch)
        return self.decode.at(batch, batch * context)

    def mixed_ms(self, prefill_tokens: float, batch: float, context: float) -> float:
        """An iteration that computes prompts and tokens; they share one reading of the weights."""
        if prefill_tokens <= 0:
            return self.decode_ms(batch, context)
        prompts = self.prefill_ms(prefill_tokens)
        if batch <= 0:
            return prompts
        return prompts + self.decode_ms(batch, context) - self.shared_ms()

    def shared_ms(self) -> float:
        """The part of an iteration that prompts and tokens have in common."""
        return min(self.prefill.surface.base, self.decode.surface.base)

    def observe(self, passes: tuple[ForwardPass, ...]) -> None:
        """Learn from iterations that computed one kind of work; heartbeats of idle engines say nothing."""
        for ranks in _engines(each for each in passes if each.wall_time > 0 and isfinite(1000 * each.wall_time)):
            milliseconds = 1000 * max(rank.wall_time for rank in ranks)
            # Sequences and tokens of a profile are those of all ranks; a prompt is of one of them.
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
        """Engines that always have prompts to compute show prefill only mixed: what tokens take is taken off."""
        if not self.prefill.ready or not self.decode.ready:
            return
        left = milliseconds - self.decode.at(sequences, max(kv, 1.0)) + self.shared_ms()
        if left > self.shared_ms():
            self.prefill.observe((prompts,), left)
