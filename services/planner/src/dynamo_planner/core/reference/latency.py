"""Target `sla`: adds a replica if every engine misses the target, removes one if the remaining ones would keep it
(a.6).

Before scaling down, the effect is predicted: the backlog of each engine is scaled by N / (N - 1) and its latency
estimated again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dynamo_planner.core.observation import EngineCapabilities, ForwardPass
from dynamo_planner.core.reference.engines import AggregatedEngine, DecodeEngine, PrefillEngine
from dynamo_planner.core.reference.reasons import LoadReason
from dynamo_planner.core.reference.verdicts import Verdict, down, hold, up


class LatencyTargets(NamedTuple):
    """The targets."""

    ttft: float
    """seconds"""
    itl: float
    """seconds"""
    sensitivity: float
    """share of the target below which a replica may be removed"""
    share: float = 1.0
    """share of prefill work that remains with the KV cache"""


REFUSED = LoadReason.SCALE_DOWN_REFUSED_CONSOLIDATION


def prefill_verdict(
    engine: PrefillEngine, passes: Sequence[ForwardPass], replicas: int, able: EngineCapabilities, aim: LatencyTargets
) -> Verdict:
    """The verdict for a prefill pool, by its time to first token."""
    batched = able.max_num_batched_tokens
    if not batched:
        return hold(
            replicas,
            LoadReason.INSUFFICIENT_DATA,
            "the model card of the prefill engines has no max_num_batched_tokens",
        )
    if not engine.ready:
        return hold(
            replicas, LoadReason.INSUFFICIENT_DATA, "too few iterations of the prefill engines are measured yet"
        )

    def ttft(queued: float) -> float:
        return engine.ttft(queued, batched_tokens=batched, share=aim.share)

    estimates = [ttft(forward.queued.sum_prefill_tokens) for forward in passes]
    estimated = max(estimates) * 1000
    if all(estimate > aim.ttft for estimate in estimates):
        return up(replicas, ttft_ms=estimated)
    if replicas <= 1:
        return hold(replicas, LoadReason.NO_CHANGE, ttft_ms=estimated)
    own = ttft(0)
    after = [ttft(_grown(forward.queued.sum_prefill_tokens, replicas)) - own for forward in passes]
    if _fits_budget(after, own, aim):
        return down(replicas, ttft_ms=estimated, consolidated_ttft_ms=(max(after) + own) * 1000)
    return hold(replicas, REFUSED, ttft_ms=estimated, consolidated_ttft_ms=(max(after) + own) * 1000)


def decode_verdict(
    engine: DecodeEngine, passes: Sequence[ForwardPass], replicas: int, able: EngineCapabilities, aim: LatencyTargets
) -> Verdict:
    """The verdict for a decode pool, by its inter-token latency."""
    if not engine.ready:
        return hold(replicas, LoadReason.INSUFFICIENT_DATA, "too few iterations of the decode engines are measured yet")
    return _by_itl(
        engine, [_kv(forward) for forward in passes], [_kv(forward) for forward in passes], replicas, able=able, aim=aim
    )


def aggregated_verdict(
    engine: AggregatedEngine,
    passes: Sequence[ForwardPass],
    replicas: int,
    able: EngineCapabilities,
    aim: LatencyTargets,
) -> Verdict:
    """The verdict for an aggregated pool: up if either latency requires it, down only if both permit it."""
    if not engine.ready:
        return hold(replicas, LoadReason.INSUFFICIENT_DATA, "too few iterations of the engines are measured yet")
    # The remaining engines will decode the waiting prompts.
    later = [_kv(forward) + forward.queued.sum_prefill_tokens for forward in passes]
    tokens = _by_itl(engine, [_kv(forward) for forward in passes], later, replicas, able=able, aim=aim)
    if not able.max_num_batched_tokens:
        return tokens
    prompts = _aggregated_prompts(engine, passes, replicas, able.max_num_batched_tokens, aim)
    figures = {**tokens.figures, **prompts.figures}
    reasons = {tokens.reason, prompts.reason}
    if LoadReason.SCALE_UP in reasons:
        return up(replicas, **figures)
    if reasons == {LoadReason.SCALE_DOWN}:
        return down(replicas, **figures)
    return hold(replicas, REFUSED if REFUSED in reasons else LoadReason.NO_CHANGE, **figures)


def _aggregated_prompts(
    engine: AggregatedEngine, passes: Sequence[ForwardPass], replicas: int, batched: int, aim: LatencyTargets
) -> Verdict:
    def ttft(queued: float, decode_kv: float) -> float:
        return engine.ttft(queued, decode_kv, batched_tokens=batched, share=aim.share)

    estimates = [ttft(forward.queued.sum_prefill_tokens, forward.scheduled.sum_decode_kv_tokens) for forward in passes]
    estimated = max(estimates) * 1000
    if all(estimate > aim.ttft for estimate in estimates):
        return up(replicas, ttft_ms=estimated)
    if replicas <= 1:
        return hold(replicas, LoadReason.NO_CHANGE, ttft_ms=estimated)
    for forward in passes:
        decode_kv = _grown(_kv(forward), replicas)
        own = ttft(0, decode_kv)
        after = ttft(_grown(forward.queued.sum_prefill_tokens, replicas), decode_kv) - own
        if not _fits_budget([after], own, aim):
            return hold(replicas, REFUSED, ttft_ms=estimated, consolidated_ttft_ms=(after + own) * 1000)
    return down(replicas, ttft_ms=estimated)


def _by_itl(
    engine: DecodeEngine | AggregatedEngine,
    now: Sequence[int],
    later: Sequence[int],
    replicas: int,
    *,
    able: EngineCapabilities,
    aim: LatencyTargets,
) -> Verdict:
    """`now` and `later`: KV tokens of each engine now, and after they are redistributed when a replica is removed."""
    estimates = [engine.itl(kv) for kv in now]
    estimated = max(estimates) * 1000
    if all(estimate > aim.itl for estimate in estimates):
        return up(replicas, itl_ms=estimated)
    if replicas <= 1:
        return hold(replicas, LoadReason.NO_CHANGE, itl_ms=estimated)
    after = [_grown(kv, replicas) for kv in later]
    consolidated = max(engine.itl(kv) for kv in after)
    figures = {"itl_ms": estimated, "consolidated_itl_ms": consolidated * 1000}
    overflows = able.max_kv_tokens is not None and any(kv >= able.max_kv_tokens for kv in after)
    if overflows or consolidated >= aim.itl * aim.sensitivity:
        return hold(replicas, REFUSED, **figures)
    return down(replicas, **figures)


def _kv(forward: ForwardPass) -> int:
    return forward.scheduled.sum_decode_kv_tokens + forward.queued.sum_decode_kv_tokens


def _grown(backlog: int, replicas: int) -> int:
    return backlog * replicas // (replicas - 1)


def _fits_budget(waits: Sequence[float], own: float, aim: LatencyTargets) -> bool:
    """Whether waiting stays within the part of the target that a prompt's own computation leaves."""
    budget = (aim.ttft - own) * aim.sensitivity
    return budget > 0 and all(wait < budget for wait in waits)
