"""How many requests a second one engine serves within its targets."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from dynamo_planner.core.estimator.engine import EngineEstimator

EXTRAPOLATION = 1.25
"""Factor up to which batches larger than measured ones are trusted; beyond it, a capacity would be a guess."""
LARGEST_BATCH = 4096


@dataclass(frozen=True, slots=True)
class Capacity:
    """The largest capacity of one engine within a target; of its smallest batch if even that misses the target."""

    rps: float
    """requests a second of an engine that is always busy"""
    latency: float
    """milliseconds of a token"""
    batch: int
    """concurrent sequences"""
    meets: bool
    """whether the target is met"""


def decode_capacity(
    engine: EngineEstimator,
    context: float,
    osl: float,
    target: float,
    *,
    max_kv_tokens: int | None = None,
    max_num_seqs: int | None = None,
) -> Capacity:
    """The capacity of an engine that only decodes: sequences of mean length `context`, `osl` tokens each, `target` ms a
    token.
    """
    context, osl = max(1.0, context), max(1.0, osl)
    sequences, tokens = engine.decode.surface.axes
    bounds = [LARGEST_BATCH, EXTRAPOLATION * sequences.knots[-1], EXTRAPOLATION * tokens.knots[-1] / context]
    if kv := max_kv_tokens or engine.max_kv_tokens:
        bounds.append(kv / context)
    if max_num_seqs:
        bounds.append(max_num_seqs)
    most = max(1, int(min(bounds)))
    batch = max(1, largest(most, lambda n: engine.decode_ms(n, context) <= target))
    took = engine.decode_ms(batch, context)
    return Capacity(batch * 1000 / (osl * took), took, batch, took <= target)


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number from 0 to `most` that fits; if a number fits, so do all smaller ones."""
    return bisect_left(range(1, most + 1), True, key=lambda number: not fits(number))


def mixed_capacity(
    engine: EngineEstimator,
    isl: float,
    osl: float,
    ttft_target: float,
    itl_target: float,
    *,
    hits: float = 0.0,
    chunk: int | None = None,
    max_kv_tokens: int | None = None,
    max_num_seqs: int | None = None,
    ranks: int = 1,
) -> Capacity:
    """The capacity of an aggregated engine: each sequence adds its share of prompt tokens to every iteration.

    A batch of n sequences starts n/osl new ones per iteration; their prompts are computed in the same iteration, with
    at most `chunk` tokens for each of its data parallel `ranks`, which share them.
    """
    fresh, osl = max(1.0, isl * (1 - hits)), max(1.0, osl)
    context = isl + osl / 2
    alone = decode_capacity(engine, context, osl, itl_target, max_kv_tokens=max_kv_tokens, max_num_seqs=max_num_seqs)

    def iteration(batch: int) -> float:
        share = batch * fresh / osl / ranks
        return engine.mixed_ms(min(share, chunk) if chunk else share, batch, context)

    def fits(batch: int) -> bool:
        share = batch * fresh / osl / ranks
        if chunk and batch > 1 and share > max(chunk - batch / ranks, 0):
            return False  # prompts arrive faster than they are computed
        first = engine.prefill_ms(max(fresh, share), chunk) + iteration(batch)
        return iteration(batch) <= itl_target and first <= ttft_target

    batch = largest(alone.batch, fits)
    meets, batch = batch > 0, max(1, batch)
    # If even one sequence misses, this is the capacity of one sequence.
    took = max(iteration(batch), 1e-3)
    return Capacity(batch * 1000 / (osl * took), took, batch, meets)
