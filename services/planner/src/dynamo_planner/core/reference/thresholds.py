"""Targets without a model: replicas are added and removed when queues and caches pass fixed thresholds (planner.md,
a.6).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dynamo_shared.api.contracts.planner import PlannerConfig, Target

from dynamo_planner.core.observation import EngineCapabilities, ForwardPass
from dynamo_planner.core.reference.reasons import LoadReason
from dynamo_planner.core.reference.verdicts import Verdict, down, hold, up


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When one replica is added or removed."""

    grow: Callable[[float], bool]
    """for any engine"""
    shrink: Callable[[float], bool]
    """for every engine"""


PREFILL = {
    Target.THROUGHPUT: Thresholds(lambda share: share >= 1.0, lambda share: share < 0.1),
    Target.LATENCY: Thresholds(lambda share: share >= 0.1, lambda share: share <= 0),
}
"""Ratio of queued prefill tokens to the context length."""
DECODE = {
    Target.THROUGHPUT: Thresholds(lambda share: share > 1.0, lambda share: share < 0.6),
    Target.LATENCY: Thresholds(lambda share: share > 0.4, lambda share: share < 0.1),
}
"""Ratio of KV tokens, scheduled and queued, to the capacity of the cache."""


def prefill_verdict(
    config: PlannerConfig, passes: Sequence[ForwardPass], replicas: int, able: EngineCapabilities
) -> Verdict:
    """The verdict for a prefill pool."""
    queued = [float(forward.queued.sum_prefill_tokens) for forward in passes]
    if config.optimization_target is Target.LOAD:
        thresholds = _given(config.prefill_scale_up_queue_tokens, config.prefill_scale_down_queue_tokens)
        return _verdict(queued, thresholds, replicas)
    if not able.context_length:
        return hold(
            replicas, LoadReason.INSUFFICIENT_DATA, "the model card of the prefill engines has no context_length"
        )
    return _verdict([tokens / able.context_length for tokens in queued], PREFILL[config.optimization_target], replicas)


def decode_verdict(
    config: PlannerConfig,
    passes: Sequence[ForwardPass],
    replicas: int,
    able: EngineCapabilities,
    *,
    prompts: bool = False,
) -> Verdict:
    """The verdict for a decode pool; with `prompts`, for an aggregated pool, whose queue will also need cache."""
    if not able.max_kv_tokens:
        return hold(replicas, LoadReason.INSUFFICIENT_DATA, "the model card of the engines has no total_kv_blocks")
    tokens = [
        forward.scheduled.sum_decode_kv_tokens
        + forward.queued.sum_decode_kv_tokens
        + (forward.queued.sum_prefill_tokens if prompts else 0)
        for forward in passes
    ]
    used = [count / able.max_kv_tokens for count in tokens]
    if config.optimization_target is Target.LOAD:
        thresholds = _given(config.decode_scale_up_kv_rate, config.decode_scale_down_kv_rate)
        return _verdict([share * 100 for share in used], thresholds, replicas)
    return _verdict(used, DECODE[config.optimization_target], replicas)


def _given(above: float | None, below: float | None) -> Thresholds:
    return Thresholds(
        lambda value: above is not None and value >= above, lambda value: below is not None and value <= below
    )


def _verdict(values: list[float], thresholds: Thresholds, replicas: int) -> Verdict:
    figures = {"values": values}
    if any(thresholds.grow(value) for value in values):
        return up(replicas, **figures)
    if replicas > 1 and all(thresholds.shrink(value) for value in values):
        return down(replicas, **figures)
    return hold(replicas, LoadReason.NO_CHANGE, **figures)
