"""The policy that follows Dynamo's own planner (planner.md, sections a.1 to a.8)."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from dynamo_shared.api.contracts.planner import PlannerConfig, Target

from dynamo_planner.core.decision import Decision, Effects, Explanation, Tick
from dynamo_planner.core.limits import Limits
from dynamo_planner.core.observation import Observation, Pool
from dynamo_planner.core.predictors import FITTED
from dynamo_planner.core.profile import Profile
from dynamo_planner.core.reference.engines import Engines
from dynamo_planner.core.reference.load import LoadPlan, LoadScaler
from dynamo_planner.core.reference.reasons import LoadReason, ThroughputReason
from dynamo_planner.core.reference.throughput import ReplicaPlan, Throughput
from dynamo_planner.core.warmup import Interval


class ReferencePolicy:
    """Predictive scaling each long interval, reactive scaling each short one; the first sets the floor of the second.

    Synchronous; ARIMA and Prophet compute for seconds, so never call it on an event loop.
    """

    def __init__(
        self, config: PlannerConfig, *, profile: Profile | None = None, warmup: Sequence[Interval] = ()
    ) -> None:
        self._config = config
        self._schedule = Schedule(config)
        self._limits = Limits(config)
        self._engines = Engines(config, profile)
        self._load = LoadScaler(config, self._engines, self._limits)
        self._throughput = Throughput(
            config, self._engines, max_kv_tokens=profile.max_kv_tokens if profile else None, warmup=warmup
        )
        self._floors: dict[Pool, int] = {}
        self._hit_rate: float | None = None

    def first_tick(self, now: float) -> Tick:
        """One interval from now."""
        return self._schedule.start(now)

    def on_tick(self, tick: Tick, observation: Observation) -> Effects:
        """Runs predictive scaling first, because its floor applies to reactive scaling at the same tick."""
        if tick.traffic_window is not None:
            self._hit_rate = observation.traffic.kv_hit_rate if observation.traffic else None
        if tick.need_forward_passes and self._config.optimization_target is Target.SLA:
            self._engines.learn(observation.forward_passes)
        plan, predicted = self._predict(tick, observation)
        load = self._react(tick, observation)
        decision = predicted
        if load.replicas is not None:
            decision = Decision(replicas=load.replicas, reason=load.reason.value)
        minimum = self._limits.raised_to_minimum(observation.workers, observation.capabilities)
        effects = Effects(
            next_tick=self._schedule.done(tick, observation.now),
            decision=decision,
            explanation=self._explain(tick, observation, plan, load),
        ).raised(minimum, LoadReason.SCALE_UP.value)
        return replace(effects, decision=effects.decision and self._in_turn(effects.decision, observation))

    def _in_turn(self, decision: Decision, observation: Observation) -> Decision:
        drawing = {pool: max(counts.ready, counts.expected or 0) for pool, counts in observation.workers.items()}
        return replace(decision, replicas=self._limits.in_turn(decision.replicas, drawing, observation.capabilities))

    def _predict(self, tick: Tick, observation: Observation) -> tuple[ReplicaPlan, Decision | None]:
        if not tick.run_throughput:
            return ReplicaPlan(reason=ThroughputReason.UNSET), None
        plan = self._throughput.plan(observation.traffic, observation.capabilities)
        if plan.replicas is None:
            return plan, None
        current = {pool: counts.ready for pool, counts in observation.workers.items()}
        desired = self._limits.step(plan.replicas, current)
        if not self._config.load_scaling:
            final = self._limits.bounded(desired, observation.capabilities)
            return plan, Decision(replicas=final, reason=plan.reason.value)
        self._floors = {pool: max(count, self._limits.least(pool)) for pool, count in desired.items()}
        bound = ThroughputReason.SET_LOWER_BOUND
        return replace(plan, reason=bound, replicas=desired, pool_reasons=dict.fromkeys(desired, bound)), None

    def _react(self, tick: Tick, observation: Observation) -> LoadPlan:
        if not tick.run_load:
            return LoadPlan(reason=LoadReason.UNSET)
        return self._load.plan(observation, kv_hit_rate=self._hit_rate, floors=self._floors)

    def _explain(self, tick: Tick, observation: Observation, plan: ReplicaPlan, load: LoadPlan) -> Explanation:
        inputs: dict[str, Any] = {
            "workers": {pool.value: asdict(counts) for pool, counts in observation.workers.items()},
            "forward_passes": len(observation.forward_passes),
            "missing": {name: why.value for name, why in observation.missing.items()},
            "advisory": self._config.advisory,
        }
        if observation.traffic is not None:
            inputs["traffic"] = {
                name: value for name, value in asdict(observation.traffic).items() if value is not None
            }
        if self._floors:
            inputs["lower_bounds"] = {pool.value: count for pool, count in self._floors.items()}
        if plan.pool_reasons:
            inputs["throughput"] = {pool.value: reason.value for pool, reason in plan.pool_reasons.items()}
        if plan.replicas is not None:
            inputs["throughput_replicas"] = {pool.value: count for pool, count in plan.replicas.items()}
        estimates: dict[str, float] = {}
        for pool, verdict in load.verdicts.items():
            inputs.setdefault("load", {})[pool.value] = {"reason": verdict.reason.value, **verdict.figures}
            estimates |= {
                f"estimated_{name}": float(verdict.figures[name])
                for name in ("ttft_ms", "itl_ms")
                if name in verdict.figures
            }
        return Explanation(
            reason=(load if tick.run_load else plan).reason.value,
            message="; ".join(filter(None, (plan.message, load.message))),
            inputs=inputs,
            predictions={**plan.predictions, **estimates},
        )


MERGE_WITHIN = 0.5
"""Seconds; two deadlines that are closer are merged into one tick."""


class Schedule:
    """Next due times of reactive and predictive scaling."""

    def __init__(self, config: PlannerConfig) -> None:
        self._load_interval = float(config.load_adjustment_interval_seconds) if config.load_scaling else None
        self._throughput_interval = (
            float(config.throughput_adjustment_interval_seconds) if config.throughput_scaling else None
        )
        self._estimates = config.optimization_target is Target.SLA
        self._fits_series = config.load_predictor in FITTED
        self._load_due: float | None = None
        self._throughput_due: float | None = None

    def start(self, now: float) -> Tick:
        """The first tick: one interval from now."""
        self._load_due = _after(now, self._load_interval)
        self._throughput_due = _after(now, self._throughput_interval)
        return self._next()

    def done(self, tick: Tick, now: float) -> Tick:
        """The tick after a requested one; what ran is due again one interval from now, regardless of its result."""
        if tick.run_load:
            self._load_due = _after(now, self._load_interval)
        if tick.run_throughput:
            self._throughput_due = _after(now, self._throughput_interval)
        return self._next()

    def _next(self) -> Tick:
        due = min(at for at in (self._load_due, self._throughput_due) if at is not None)
        load = self._load_due is not None and self._load_due - due <= MERGE_WITHIN
        throughput = self._throughput_due is not None and self._throughput_due - due <= MERGE_WITHIN
        window = self._throughput_interval if throughput else None
        if self._throughput_interval is None and self._estimates:
            # Nothing is predicted, but reactive scaling needs the KV-cache hit rate for its estimates.
            window = self._load_interval
        return Tick(
            at=due,
            run_load=load,
            run_throughput=throughput,
            traffic_window=window,
            need_forward_passes=load,
            fits_series=throughput and self._fits_series,
        )


def _after(now: float, interval: float | None) -> float | None:
    return None if interval is None else now + interval
