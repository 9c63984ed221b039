"""The policy `adaptive`: one look at the traffic each sample, one decision where a pool should change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig

from dynamo_planner.core.adaptive.demand import Demand
from dynamo_planner.core.adaptive.explaining import explain
from dynamo_planner.core.adaptive.forecasting import Forecast, Forecaster
from dynamo_planner.core.adaptive.pools import PoolPlan, Sizing, Steady
from dynamo_planner.core.adaptive.reasons import Reason
from dynamo_planner.core.adaptive.settings import Settings
from dynamo_planner.core.deciding import Decision, Effects, Explanation, Tick
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.observing import EngineCapabilities, Observation, Pool, PoolCounts, Traffic
from dynamo_planner.core.profile import Profile
from dynamo_planner.core.reference.limits import Limits
from dynamo_planner.core.warmup import Interval

LONGER = 2.0
"""A source that has nothing to tell of a short window is asked for one so many times longer: it is scraped too seldom."""


class AdaptivePolicy:
    """Plans pools for the load that is foretold for when new replicas would be there, and keeps them steady."""

    def __init__(
        self,
        config: PlannerConfig,
        *,
        profile: Profile | None = None,
        warmup: Sequence[Interval] = (),
        settings: Settings | None = None,
    ) -> None:
        self._config = config
        self._settings = settings or Settings()
        self._limits = Limits(config)
        self._engine = EngineEstimator(profile, least_samples=config.load_min_observations)
        self._sizing = Sizing(config, self._engine, self._settings)
        self._demand = Demand()
        self._forecaster = Forecaster()
        self._steady = {pool: Steady() for pool in self._limits.pools}
        self._sample = self._window = self._settings.sample(config)
        self._shrunk = float("-inf")
        self._warm(warmup)

    def first_tick(self, now: float) -> Tick:
        """One sample from now."""
        return self._tick(now + self._sample)

    def on_tick(self, tick: Tick, observation: Observation) -> Effects:
        """Look, learn, foretell, decide."""
        next_tick = self._tick(max(tick.at + self._sample, observation.now))
        self._engine.observe(observation.forward_passes)
        held = self._unknown(observation)
        if held is not None:
            return Effects(next_tick=self._tick(next_tick.at), explanation=held)
        assert observation.traffic is not None
        now, traffic = observation.now, observation.traffic
        self._window = self._sample
        if not self._demand.observe(now, traffic):
            return Effects(next_tick=next_tick, explanation=_held(Reason.HOLD_MISSING, "the traffic told is no number"))
        if not self._demand.known:
            return self._nobody_yet(next_tick, observation)
        self._learn(traffic, observation)
        forecast = self._forecaster.forecast(self._demand, now, self._horizon(observation))
        if self._demand.quiet >= self._config.throughput_adjustment_interval_seconds:
            return self._idle(next_tick, observation)
        lacking = [pool for pool in self._limits.pools if not self._sizing.ready(pool)]
        if lacking:
            message = (
                f"too little is known of the {' and '.join(lacking)} engines: no profile, and too few iterations seen"
            )
            return Effects(next_tick=next_tick, explanation=_held(Reason.HOLD_NOT_READY, message))
        plans = {pool: self._plan(pool, observation, forecast) for pool in self._limits.pools}
        return self._decide(next_tick, observation, forecast, plans)

    # Inputs.

    def _tick(self, at: float) -> Tick:
        return Tick(at=at, run_load=True, run_throughput=True, traffic_window=self._window, need_forward_passes=True)

    def _unknown(self, seen: Observation) -> Explanation | None:
        """Why nothing can be decided; None where it can."""
        unknown = [pool for pool in self._limits.pools if pool not in seen.workers]
        if "workers" in seen.missing or unknown:
            why = seen.missing.get("workers")
            return _held(
                Reason.HOLD_MISSING, f"worker counts are not known{f' ({why.value})' if why else ''}: replicas hold"
            )
        if seen.traffic is None or "traffic" in seen.missing:
            why = seen.missing.get("traffic")
            longest = float(self._config.throughput_adjustment_interval_seconds)
            self._window = min(max(longest, self._sample), self._window * LONGER)
            return _held(
                Reason.HOLD_MISSING, f"the traffic is not known{f' ({why.value})' if why else ''}: replicas hold"
            )
        if seen.traffic.requests == 0 and self._working(seen):
            return _held(
                Reason.HOLD_CONTRADICTION, "no request is told of, and engines have prompts to compute: replicas hold"
            )
        return None

    @staticmethod
    def _working(seen: Observation) -> bool:
        return any(forward.queued.num_prefill_requests > 0 for forward in seen.forward_passes)

    def _learn(self, traffic: Traffic, seen: Observation) -> None:
        load = self._demand.load(traffic.requests / traffic.duration)
        pools = self._limits.pools
        ready = {pool: seen.workers[pool].ready for pool in pools}
        if Pool.PREFILL in pools and traffic.ttft and self._sizing.ready(Pool.PREFILL) and traffic.requests > 0:
            self._sizing.learn_after(traffic.ttft, load, self._able(seen, Pool.PREFILL), ready[Pool.PREFILL])
        told = any(f.pool is Pool.DECODE and f.wall_time > 0 for f in seen.forward_passes)
        if traffic.itl and not told and Pool.DECODE in pools and self._config.mode is not Mode.AGG:
            # Without forward passes: sequences by Little's law, at the pace that was measured.
            batch = load.rate * load.osl * traffic.itl / 1000 / max(ready[Pool.DECODE], 1)
            if batch >= 1:
                self._engine.decode.observe((batch, batch * load.context), traffic.itl)

    def _warm(self, warmup: Sequence[Interval]) -> None:
        seconds = float(self._config.throughput_adjustment_interval_seconds)
        for index, interval in enumerate(warmup):
            at = (index - len(warmup)) * seconds
            self._demand.observe(
                at, Traffic(duration=seconds, requests=interval.requests, isl=interval.isl, osl=interval.osl)
            )

    # Planning.

    def _startup(self, pool: Pool, seen: Observation) -> float:
        return max(0.0, seen.startup_seconds.get(pool, self._settings.unknown_startup))

    def _horizon(self, seen: Observation) -> float:
        return max(self._startup(pool, seen) for pool in self._limits.pools) + self._sample

    def _able(self, seen: Observation, pool: Pool) -> EngineCapabilities:
        return seen.capabilities.get(pool, EngineCapabilities())

    def _plan(self, pool: Pool, seen: Observation, forecast: Forecast) -> PoolPlan:
        settings, able, counts = self._settings, self._able(seen, pool), seen.workers[pool]
        startup = self._startup(pool, seen)
        horizon = startup + self._sample
        worth = settings.worth if startup > 0 else 0.0
        waiting = self._waiting(seen, forecast.at(startup / 2), startup)
        soon = forecast.needed(startup, horizon + max(settings.together, startup), worth)
        growing = self._demand.load(soon + waiting)
        staying = forecast.needed(0.0, max(settings.hold, startup), 0.0) * settings.spare + waiting
        sizer = self._sizing.sizer(pool, growing, able)
        up = sizer.fit(settings.share)
        keep = self._sizing.sizer(pool, self._demand.load(staying), able).fit(settings.share)
        least = self._limits.least(pool)
        enough = max(least, self._steady[pool].enough(seen.now, keep.replicas, settings.hold))
        current = _asked(counts)
        most = self._config.max_throughput_scaling_replicas
        wanted = max(least, up.replicas)
        lowest = max(least, keep.replicas, wanted, current - most)
        near = forecast.needed(startup, horizon + max(settings.together, startup) + settings.near, worth) + waiting
        next_step = self._sizing.sizer(pool, self._demand.load(near), able).fit(settings.share).replicas
        replicas, reason = current, Reason.NO_CHANGE
        if wanted > current and counts.pending:
            reason = Reason.HOLD_PENDING
        elif wanted > current:
            replicas, reason = min(wanted, current + most), Reason.SCALE_UP
        elif max(enough, wanted) < current and seen.now - self._shrunk >= settings.pause:
            replicas, reason = max(enough, lowest), Reason.SCALE_DOWN
        elif wanted < current:
            reason = Reason.HOLD_STABILIZING
        return PoolPlan(
            current=current,
            replicas=replicas,
            up=up,
            keep=keep,
            horizon=horizon,
            reason=reason,
            sizer=sizer,
            beside_up=current if counts.pending else min(max(current, next_step), current + most),
            beside_down=min(current, lowest),
        )

    def _waiting(self, seen: Observation, rate: float, startup: float) -> float:
        """Requests a second that come on top while prompts that wait are worked off, and new replicas are there for it."""
        tokens = sum(forward.queued.sum_prefill_tokens for forward in seen.forward_passes)
        if not tokens:
            return 0.0
        load = self._demand.load(rate)
        pool = Pool.PREFILL if Pool.PREFILL in self._limits.pools else Pool.DECODE
        prompts = tokens / max(load.fresh, 1.0)
        if pool is Pool.PREFILL:
            each = self._sizing.sizer(pool, load, self._able(seen, pool)).fit(0.0).capacity
            # What is asked for already works on it, too.
            prompts -= max(0.0, each * _asked(seen.workers[pool]) - rate) * startup
        return max(0.0, prompts) / max(self._settings.drain, startup)

    def _decide(
        self, next_tick: Tick, seen: Observation, forecast: Forecast, plans: Mapping[Pool, PoolPlan]
    ) -> Effects:
        wanted = _together(plans)
        final = self._limits.bounded(wanted, seen.capabilities)
        current = {pool: plan.current for pool, plan in plans.items()}
        up = [pool for pool in final if final[pool] > current[pool]]
        down = [pool for pool in final if final[pool] < current[pool]]
        if up and down:
            reason = Reason.REBALANCE
        elif up or down:
            reason = Reason.SCALE_UP if up else Reason.SCALE_DOWN
        elif final != wanted:
            reason = Reason.HOLD_BUDGET
        else:
            held = {plan.reason for plan in plans.values()}
            order = (Reason.HOLD_PENDING, Reason.HOLD_STABILIZING)
            reason = next((reason for reason in order if reason in held), Reason.NO_CHANGE)
        decision = Decision(replicas=final, reason=reason.value) if up or down else None
        if down:
            self._shrunk = seen.now
        told = explain(
            reason,
            seen,
            demand=self._demand,
            forecast=forecast,
            plans=plans,
            final=final,
            losses=self._forecaster.losses(),
            share=self._settings.share,
        )
        return Effects(next_tick=next_tick, decision=decision, explanation=told)

    def _idle(self, next_tick: Tick, seen: Observation) -> Effects:
        """Nobody came for a whole interval: the least, at once; what was wanted before no longer counts."""
        for steady in self._steady.values():
            steady.forget()
        return self._least(
            next_tick, seen, Reason.IDLE, f"no request for {self._demand.quiet:.0f} s: each pool goes to its minimum"
        )

    def _nobody_yet(self, next_tick: Tick, seen: Observation) -> Effects:
        interval = self._config.throughput_adjustment_interval_seconds
        if self._demand.quiet < interval:
            return Effects(next_tick=next_tick, explanation=_held(Reason.NO_TRAFFIC_YET, "no request has come yet"))
        return self._least(
            next_tick, seen, Reason.IDLE, f"no request for {self._demand.quiet:.0f} s: each pool goes to its minimum"
        )

    def _least(self, next_tick: Tick, seen: Observation, reason: Reason, message: str) -> Effects:
        final = self._limits.bounded({pool: self._limits.least(pool) for pool in self._limits.pools}, seen.capabilities)
        changed = any(final[pool] != _asked(seen.workers[pool]) for pool in final)
        return Effects(
            next_tick=next_tick,
            decision=Decision(replicas=final, reason=reason.value) if changed else None,
            explanation=_held(reason, message),
        )


def _together(plans: Mapping[Pool, PoolPlan]) -> dict[Pool, int]:
    """Pools that are about to change do so with the one that changes now: one command in place of two."""
    reasons = {plan.reason for plan in plans.values()}
    if Reason.SCALE_UP in reasons:
        return {p: max(plan.replicas, plan.beside_up) for p, plan in plans.items()}
    if Reason.SCALE_DOWN in reasons:
        return {p: min(plan.replicas, plan.beside_down) for p, plan in plans.items()}
    return {p: plan.replicas for p, plan in plans.items()}


def _asked(counts: PoolCounts) -> int:
    """Replicas that are asked for: those that start or wait for room will come, so they count."""
    return counts.expected if counts.expected is not None else counts.ready + counts.starting + counts.pending


def _held(reason: Reason, message: str) -> Explanation:
    return Explanation(load_reason=reason.value, throughput_reason=reason.value, message=message)
