"""Predictive scaling: the replicas that the load of the next interval needs (planner.md, section a.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig

from dynamo_planner.core.limits import planned_pools
from dynamo_planner.core.observation import EngineCapabilities, Pool, Traffic
from dynamo_planner.core.predictors import HISTORY, make_predictor
from dynamo_planner.core.reference.engines import EngineCapacity, Engines, prefill_share
from dynamo_planner.core.reference.reasons import ThroughputReason
from dynamo_planner.core.warmup import Interval

_LARGEST = 1e12
"""Requests of an interval, and tokens of a request: a predictor would follow a larger number for days."""
Able = Mapping[Pool, EngineCapabilities]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlan:
    """Replicas that the predicted load needs, before any limit; None if they cannot be computed."""

    reason: ThroughputReason
    replicas: Mapping[Pool, int] | None = None
    pool_reasons: Mapping[Pool, ThroughputReason] = field(default_factory=dict)
    predictions: Mapping[str, float] = field(default_factory=dict)
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLoad:
    """The predicted load of the next interval."""

    rate: float
    """requests a second"""
    isl: float
    osl: float
    kv_hit_rate: float | None

    def figures(self) -> dict[str, float]:
        """The figures by their names in explanations."""
        values = {"requests_per_second": self.rate, "isl": self.isl, "osl": self.osl}
        return values if self.kv_hit_rate is None else {**values, "kv_hit_rate": self.kv_hit_rate}


class Throughput:
    """Predicts the load, and divides it by the capacity of the engines."""

    def __init__(
        self,
        config: PlannerConfig,
        engines: Engines,
        *,
        max_kv_tokens: int | None = None,
        warmup: Sequence[Interval] = (),
    ) -> None:
        self._config, self._engines, self._max_kv = config, engines, max_kv_tokens
        self._requests, self._isl, self._osl, self._hits = (make_predictor(config) for _ in range(4))
        # A predictor keeps no older intervals, and learning each costs time.
        for interval in warmup[-HISTORY:]:
            self._learn(interval.requests, interval.isl, interval.osl)
        for predictor in (self._requests, self._isl, self._osl):
            predictor.end_warmup()

    def plan(self, traffic: Traffic | None, able: Able) -> ReplicaPlan:
        """The plan for the next interval, from the traffic of the one that ended."""
        if traffic is None or not _is_valid(traffic):
            return ReplicaPlan(
                reason=ThroughputReason.NO_TRAFFIC_DATA,
                message="the traffic of the interval is unknown, replicas do not change",
            )
        # A window may be longer than the interval, and the warm-up trace has intervals.
        interval = self._config.throughput_adjustment_interval_seconds
        self._learn(traffic.requests * interval / traffic.duration, traffic.isl, traffic.osl)
        if traffic.kv_hit_rate is not None:
            self._hits.observe(traffic.kv_hit_rate)
        load = PredictedLoad(
            rate=max(0.0, self._requests.predict()) / interval,
            isl=self._isl.predict(),
            osl=self._osl.predict(),
            kv_hit_rate=self._hits.predict() if self._hits.steps else None,
        )
        plan = self._plan(load, able)
        fallbacks = {each.fallback for each in (self._requests, self._isl, self._osl, self._hits) if each.fallback}
        if fallbacks:
            note = f"{'; '.join(sorted(fallbacks))}; the planner used the last value"
            return replace(plan, message=f"{plan.message}; {note}" if plan.message else note)
        return plan

    def _learn(self, requests: float, isl: float, osl: float) -> None:
        self._requests.observe(requests)
        # An interval without requests has no lengths; any reported ones are the last known values.
        if isl > 0 and osl > 0:
            self._isl.observe(isl)
            self._osl.observe(osl)

    def _plan(self, load: PredictedLoad, able: Able) -> ReplicaPlan:
        pools = planned_pools(self._config.mode)
        if load.isl <= 0 or load.osl <= 0:
            if load.rate == 0:
                return ReplicaPlan(
                    reason=ThroughputReason.SCALE,
                    replicas=dict.fromkeys(pools, 0),
                    predictions=load.figures(),
                    message="no request has arrived yet",
                )
            return ReplicaPlan(
                reason=ThroughputReason.PREDICT_FAILED,
                predictions=load.figures(),
                message=f"predicted lengths of {load.isl:g} and {load.osl:g} tokens are not valid",
            )
        capacities = {pool: self._capacity(pool, load, able.get(pool, EngineCapabilities())) for pool in pools}
        predictions = {**load.figures(), **_figures(capacities)}
        missing = [pool for pool, capacity in capacities.items() if capacity is None]
        if missing:
            names = " and ".join(missing)
            return ReplicaPlan(
                reason=ThroughputReason.MODEL_NOT_READY,
                pool_reasons={
                    pool: ThroughputReason.MODEL_NOT_READY if pool in missing else ThroughputReason.PARTNER_NOT_READY
                    for pool in pools
                },
                predictions=predictions,
                message=f"too little data on the {names} engines: no profile, or too few measured iterations",
            )
        known = {pool: capacity for pool, capacity in capacities.items() if capacity}
        return ReplicaPlan(
            reason=ThroughputReason.SCALE,
            replicas={pool: ceil(load.rate / capacity.requests_per_second) for pool, capacity in known.items()},
            pool_reasons=dict.fromkeys(pools, ThroughputReason.SCALE),
            predictions=predictions,
            message="".join(self._too_slow(pool, capacity) for pool, capacity in known.items()),
        )

    def _too_slow(self, pool: Pool, capacity: EngineCapacity) -> str:
        """A message if a single prompt takes longer than its target, which more engines cannot change;
        otherwise empty.
        """
        if pool is not Pool.PREFILL or capacity.ttft <= self._config.ttft_ms / 1000:
            return ""
        return f"a prompt alone takes {capacity.ttft * 1000:.0f} ms to its first token, and ttft_ms is {self._config.ttft_ms:g}"

    def _capacity(self, pool: Pool, load: PredictedLoad, able: EngineCapabilities) -> EngineCapacity | None:
        config, engines, share = self._config, self._engines, prefill_share(load.kv_hit_rate)
        if config.mode is Mode.AGG:
            if not engines.aggregated.ready:
                return None
            return engines.aggregated.capacity(
                load.isl,
                load.osl,
                share=share,
                ttft_target=config.ttft_ms / 1000,
                itl_target=config.itl_ms / 1000,
                able=able,
            )
        if pool is Pool.PREFILL:
            if not engines.prefill.ready:
                return None
            return engines.prefill.capacity(load.isl, batched_tokens=able.max_num_batched_tokens, share=share)
        if not engines.decode.ready:
            return None
        return engines.decode.capacity(
            load.isl + load.osl / 2,
            load.osl,
            target=config.itl_ms / 1000,
            most_kv=able.max_kv_tokens or self._max_kv,
            most_seqs=able.max_num_seqs,
        )


def _is_valid(traffic: Traffic) -> bool:
    return traffic.duration > 0 and all(
        0 <= value <= _LARGEST for value in (traffic.requests, traffic.isl, traffic.osl)
    )


def _figures(capacities: Mapping[Pool, EngineCapacity | None]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for pool, capacity in capacities.items():
        if capacity is not None:
            figures[f"{pool.value}_capacity_requests_per_second"] = capacity.requests_per_second
            if capacity.ttft:
                figures["estimated_ttft_ms"] = capacity.ttft * 1000
            if capacity.itl:
                figures["estimated_itl_ms"] = capacity.itl * 1000
    return figures
