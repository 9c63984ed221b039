"""The policy `adaptive`: reads the traffic at each sample, and decides when a pool should change."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from dynamo_shared.api.contracts.planner import Mode, PlannerConfig

from dynamo_planner.core.adaptive.budget import BudgetedReplicas
from dynamo_planner.core.adaptive.columns import Array
from dynamo_planner.core.adaptive.constant_replicas import constant_replicas, highest
from dynamo_planner.core.adaptive.cost_benefit import CostBenefit, PoolState, Rates
from dynamo_planner.core.adaptive.demand import Demand
from dynamo_planner.core.adaptive.explanation import explain
from dynamo_planner.core.adaptive.forecast import MEMORY, UNSEEN, Forecast, Forecaster
from dynamo_planner.core.adaptive.hold_time import OVER, HoldTime, HoldTimes, Needed
from dynamo_planner.core.adaptive.needs import MERGE_WINDOW, Needs, ahead, by_price, by_share
from dynamo_planner.core.adaptive.pools import PoolPlan, Sizing
from dynamo_planner.core.adaptive.promise import WINDOW, Promise
from dynamo_planner.core.adaptive.reasons import Reason
from dynamo_planner.core.adaptive.risk import risk
from dynamo_planner.core.adaptive.sizers import MOST, Load, Sizer
from dynamo_planner.core.decision import Decision, Effects, Explanation, Tick
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.limits import Limits
from dynamo_planner.core.observation import (
    UNKNOWN_STARTUP,
    EngineCapabilities,
    Missing,
    Observation,
    Pool,
    PoolCounts,
    Traffic,
)
from dynamo_planner.core.profile import Profile
from dynamo_planner.core.warmup import Interval, as_past

WINDOW_GROWTH = 2.0
"""If a source has no samples for a short window, the window is lengthened by this factor: the source is scraped too
rarely.
"""
SHORTER_AFTER = 600.0
"""Seconds after which a shorter window is tried again: each failed attempt blocks decisions for one sample."""
SHORTEST_STEP = 2.5
MOST_STEPS = 60
"""Lead times that are weighed: minimum seconds between them, and their maximum number."""
HISTORY_SECONDS = OVER
"""Seconds of history to begin with: the hold times are simulated on it."""
COVERED_SHARE = 0.99
"""Share of requests in time above which more replicas are not considered."""
PAUSES = 2.0
"""Requests have ceased after this multiple of the longest recent pause."""
SHORTEST_SAMPLE, LONGEST_SAMPLE = 10.0, 30.0
"""Seconds of traffic in a sample: shorter windows are mostly noise, longer ones show a change too late."""


class AdaptivePolicy:
    """Plans pools for the load predicted for the time when new replicas are ready, and keeps them steady."""

    def __init__(
        self, config: PlannerConfig, *, profile: Profile | None = None, warmup: Sequence[Interval] = ()
    ) -> None:
        self._config = config
        self._limits = Limits(config)
        self._engine = EngineEstimator(profile, least_samples=config.load_min_observations)
        self._sizing = Sizing(config, self._engine)
        self._demand = Demand()
        self._promise = Promise(config.attainment)
        self._forecaster = Forecaster()
        self._hold_times = HoldTimes(self._limits.pools)
        self._hold = HoldTime(0.0, {})
        self._sample = self._window = _sample(config)
        self._shorter_at = 0.0
        self._queued = 0
        self._budgeted = BudgetedReplicas(self._limits)
        # Older intervals are not used to judge methods, and each costs milliseconds in the first tick.
        self._past = as_past(warmup[-MEMORY:], float(config.throughput_adjustment_interval_seconds))

    def first_tick(self, now: float) -> Tick:
        """One sample from now."""
        return self._tick(now + self._sample)

    def on_tick(self, tick: Tick, observation: Observation) -> Effects:
        """Observe, learn, predict, decide. Each pool gets at least its minimum, even if nothing can be decided."""
        minimum = self._limits.raised_to_minimum(observation.workers, observation.capabilities)
        return self._effects(tick, observation).raised(minimum, Reason.SCALE_UP.value)

    def _effects(self, tick: Tick, observation: Observation) -> Effects:
        # A missed sample is not repeated: it would cover the same traffic as this one.
        at = tick.at + self._sample if tick.at + self._sample > observation.now else observation.now + self._sample
        self._engine.observe(observation.forward_passes)
        self._sizing.observe(observation.forward_passes)
        held = self._unknown(observation)
        if held is not None:
            return Effects(next_tick=self._tick(at), explanation=held)
        assert observation.traffic is not None
        now, traffic = observation.now, observation.traffic
        if now >= self._shorter_at:
            self._window = max(self._sample, self._window / WINDOW_GROWTH)
        if not self._demand.samples:
            self._recall(observation, now - traffic.duration)
        is_number = self._demand.observe(now, traffic)
        next_tick = self._tick(at)
        if not is_number:
            return Effects(
                next_tick=next_tick,
                explanation=_held(Reason.HOLD_MISSING, "a value of the reported traffic is not a number"),
            )
        if not self._demand.known:
            return self._before_traffic(next_tick, observation)
        self._learn(traffic, observation)
        missed = self._config.gpu_price is None and self._promise.behind > 0
        forecast = self._forecaster.forecast(self._demand, now, self._horizon(observation), missed=missed)
        if self._demand.quiet >= self._idle_after(observation, forecast):
            return self._idle(next_tick, observation)
        lacking = [pool for pool in self._limits.pools if not self._sizing.ready(pool)]
        if lacking:
            message = (
                f"too little data on the {' and '.join(lacking)} engines: no profile, and too few measured iterations"
            )
            return Effects(next_tick=next_tick, explanation=_held(Reason.HOLD_NOT_READY, message, needs_passes=True))
        sizers = self._sizers(self._demand.load(0.0), observation)
        self._review(observation, traffic, sizers)
        plans = self._plan(observation, forecast, sizers)
        return self._decide(next_tick, observation, forecast, plans)

    # Inputs.

    def _tick(self, at: float) -> Tick:
        return Tick(
            at=at,
            run_load=True,
            run_throughput=True,
            traffic_window=self._window,
            past_window=None if self._demand.samples else HISTORY_SECONDS,
            need_forward_passes=True,
        )

    def _unknown(self, observation: Observation) -> Explanation | None:
        """Why nothing can be decided; None if a decision is possible."""
        unknown = [pool for pool in self._limits.pools if pool not in observation.workers]
        if "workers" in observation.missing or unknown:
            why = observation.missing.get("workers")
            return _held(
                Reason.HOLD_MISSING,
                f"worker counts are unknown{f' ({why.value})' if why else ''}: replicas do not change",
            )
        workers = observation.workers
        sizes = {pool: max(workers[pool].ready, _asked(workers[pool]), self._least_of(pool)) for pool in workers}
        if large := [f"{count} {pool}" for pool, count in sizes.items() if count > MOST]:
            return _held(
                Reason.HOLD_TOO_MANY, f"{' and '.join(large)} replicas exceed {MOST}, the maximum for planning"
            )
        if observation.traffic is None or "traffic" in observation.missing:
            why = observation.missing.get("traffic")
            if why is Missing.TOO_YOUNG:
                longest = float(self._config.throughput_adjustment_interval_seconds)
                self._window = min(max(longest, self._sample), self._window * WINDOW_GROWTH)
                self._shorter_at = observation.now + SHORTER_AFTER
            return _held(
                Reason.HOLD_MISSING, f"the traffic is unknown{f' ({why.value})' if why else ''}: replicas do not change"
            )
        before, self._queued = (
            self._queued,
            sum(forward.queued.sum_prefill_tokens for forward in observation.forward_passes),
        )
        if observation.traffic.requests == 0 and self._queued and self._queued >= before:
            return _held(
                Reason.HOLD_CONTRADICTION,
                "no request is reported, but engines have queued prompts: replicas do not change",
            )
        if observation.traffic.requests == 0 and observation.traffic.ended and _works(observation):
            return _held(
                Reason.HOLD_CONTRADICTION,
                "this release counts only ended requests, none has ended, and engines are busy: replicas do not change",
            )
        return None

    def _learn(self, traffic: Traffic, observation: Observation) -> None:
        load = self._demand.load(traffic.requests / traffic.duration)
        pools = self._limits.pools
        ready = {pool: observation.workers[pool].ready for pool in pools}
        if Pool.PREFILL in pools and traffic.ttft and self._sizing.ready(Pool.PREFILL) and traffic.requests > 0:
            self._sizing.learn_after(
                traffic.ttft, load, self._capabilities(observation, Pool.PREFILL), ready[Pool.PREFILL]
            )
        reported = any(f.pool is Pool.DECODE and f.wall_time > 0 for f in observation.forward_passes)
        if traffic.itl and not reported and Pool.DECODE in pools and self._config.mode is not Mode.AGG:
            # Without forward passes: sequences by Little's law, from the measured token latency.
            batch = load.rate * load.osl * traffic.itl / 1000 / max(ready[Pool.DECODE], 1)
            if batch >= 1:
                self._engine.decode.observe((batch, batch * load.context), traffic.itl)

    def _review(self, observation: Observation, traffic: Traffic, sizers: Mapping[Pool, Sizer]) -> None:
        """Estimate the share of the traffic that the serving replicas kept."""
        rate = traffic.requests / traffic.duration
        share = prod(sizer.at(rate).share(observation.workers[pool].ready) for pool, sizer in sizers.items())
        requests = rate * min(traffic.duration, self._sample)
        self._promise.observe(observation.now, requests, 0.0 if self._is_late(traffic) else share)

    def _is_late(self, traffic: Traffic) -> bool:
        """Whether a mean latency exceeds its target."""
        return any(
            mean is not None and mean > target
            for mean, target in ((traffic.ttft, self._config.ttft_ms), (traffic.itl, self._config.itl_ms))
        )

    def _recall(self, observation: Observation, ended: float) -> None:
        """Learn from the traffic before planning began, up to `ended`, as if it had been planned for.

        So a planner that restarts forgets neither waves nor bursts. If no such traffic is known, the trace of the
        configuration is used. The replicas that served it are not known, so the promise counts as missed only what the
        mean latencies prove to be late.
        """
        known, self._past = observation.past or self._past, ()
        horizon = self._horizon(observation)
        for each in known:
            at, traffic = ended - each.ago, each.traffic
            if each.ago < WINDOW and (traffic.ttft is not None or traffic.itl is not None):
                self._promise.observe(at, traffic.requests, 0.0 if self._is_late(traffic) else 1.0)
            if self._demand.observe(at, traffic) and self._demand.known:
                self._forecaster.forecast(self._demand, at, horizon)
        if not self._demand.known or not all(self._sizing.ready(pool) for pool in self._limits.pools):
            return
        past, share = list(self._demand.samples), self._promise.holds
        sizers = self._sizers(self._demand.load(highest(past)), observation)
        desired = {pool: sizer.fewest(COVERED_SHARE) for pool, sizer in sizers.items()}
        most = max(self._limits.bounded(desired, observation.capabilities).values())
        self._hold_times.recall(past, self._sample, sizers, most, share)

    # Planning.

    def _startup(self, pool: Pool, observation: Observation) -> float:
        return max(0.0, observation.startup_seconds.get(pool, UNKNOWN_STARTUP))

    def _longest_startup(self, observation: Observation) -> float:
        return max(self._startup(pool, observation) for pool in self._limits.pools)

    def _horizon(self, observation: Observation) -> float:
        return self._longest_startup(observation) + self._sample

    def _capabilities(self, observation: Observation, pool: Pool) -> EngineCapabilities:
        return observation.capabilities.get(pool, EngineCapabilities())

    def _sizers(self, load: Load, observation: Observation) -> dict[Pool, Sizer]:
        """The sizer of each pool, for a load."""
        return {
            pool: self._sizing.sizer(pool, load, self._capabilities(observation, pool)) for pool in self._limits.pools
        }

    def _plan(self, observation: Observation, forecast: Forecast, sizers: Mapping[Pool, Sizer]) -> dict[Pool, PoolPlan]:
        """The plan of each pool: more replicas if they bring enough in time, fewer if they were not worth it for a
        while.
        """
        startup, now = self._longest_startup(observation), observation.now
        leads = _leads(startup)
        cost_benefit = self._cost_benefit(observation, forecast, startup, leads, sizers)
        if self._config.gpu_price is None:
            up, keep = by_share(cost_benefit, startup, self._promise.aim)
        else:
            up, keep = by_price(cost_benefit, startup)
        self._hold_times.observe(Needed(now, self._demand.samples[-1].rate, keep, by_wave=forecast.way == "wave"))
        self._hold = self._hold_for(cost_benefit, startup)
        enough = self._enough(cost_benefit, startup, now, self._hold)
        needs = {
            pool: Needs(
                current=state.asked,
                least=state.least,
                up=up[pool],
                keep=keep[pool],
                planned=self._hold_times.planned(now, pool, startup),
                enough=enough[pool],
            )
            for pool, state in cost_benefit.pools.items()
        }
        if any(each.shrinks for each in needs.values()):
            # Other replicas that can go soon are removed together with it, which saves a decision.
            soon = self._hold_for(cost_benefit, startup, MERGE_WINDOW)
            enough = self._enough(cost_benefit, startup, now + MERGE_WINDOW, soon)
            needs = {pool: replace(each, enough=enough[pool]) for pool, each in needs.items()}
        step, workers = self._config.max_throughput_scaling_replicas, observation.workers
        given = {pool: each.given(pending=workers[pool].pending > 0, step=step) for pool, each in needs.items()}
        final = {pool: replicas for pool, (replicas, _) in given.items()}
        calm = cost_benefit.expecting(forecast.rates_at(leads)).cheapest(
            startup, startup + MERGE_WINDOW, self._promise.aim, cost_benefit.least, cost_benefit.most
        )
        held = {pool: each.held(final[pool]) for pool, each in needs.items()}
        return {
            pool: PoolPlan(
                current=state.asked,
                replicas=final[pool],
                reason=given[pool][1],
                sizer=state.sizer,
                brings=cost_benefit.around(pool, final, startup, startup + MERGE_WINDOW),
                price=cost_benefit.price * state.gpus,
                gpus=state.gpus,
                held=held[pool],
                reserve=max(0, final[pool] - calm[pool] - held[pool]),
            )
            for pool, state in cost_benefit.pools.items()
        }

    def _enough(self, cost_benefit: CostBenefit, startup: float, at: float, hold: HoldTime) -> dict[Pool, int]:
        """Replicas that pools must keep at a time: now, or soon.

        These are the ones planned within the last start-up time, and the existing ones that are held.
        """
        return {
            pool: max(self._hold_times.planned(at, pool, startup), min(hold.replicas[pool], state.asked))
            for pool, state in cost_benefit.pools.items()
        }

    def _hold_for(self, cost_benefit: CostBenefit, startup: float, soon: float = 0.0) -> HoldTime:
        """How long unneeded replicas are held, and which are still held in `soon` seconds.

        If GPUs have a price, none are held: the price decides alone.
        """
        if self._config.gpu_price is not None:
            return HoldTime(0.0, dict.fromkeys(cost_benefit.pools, 0))
        sizers = {pool: (state.sizer, state.gpus) for pool, state in cost_benefit.pools.items()}
        share = self._promise.holds
        return self._hold_times.hold(sizers, startup, share, 1 - share, soon=soon)

    def _cost_benefit(
        self,
        observation: Observation,
        forecast: Forecast,
        startup: float,
        leads: Array,
        sizers: Mapping[Pool, Sizer],
    ) -> CostBenefit:
        rates, rate = forecast.spread(leads), forecast.at(startup + self._sample)
        highest = float(rates.max())
        states = {pool: self._state(pool, observation, sizer.at(rate), highest) for pool, sizer in sizers.items()}
        best = 1 / sum(state.gpus / state.sizer.capacity for state in states.values())
        return CostBenefit(states, Rates(leads=leads, rates=rates), (self._config.gpu_price or 0.0) * best)

    def _constant_replicas(
        self, observation: Observation, plans: Mapping[Pool, PoolPlan]
    ) -> tuple[dict[Pool, int], float] | None:
        """Constant replicas that would have kept the promise of the last hour."""
        samples = [sample for sample in self._demand.samples if sample.at > observation.now - WINDOW]
        rate = highest(samples)
        states = {pool: self._state(pool, observation, plan.sizer.at(rate), rate) for pool, plan in plans.items()}
        return constant_replicas(states, samples, self._promise.attainment)

    def _least_of(self, pool: Pool) -> int:
        return max(self._limits.least(pool), 1)

    def _state(self, pool: Pool, observation: Observation, sizer: Sizer, highest: float) -> PoolState:
        counts = observation.workers[pool]
        asked, least = _asked(counts), self._least_of(pool)
        prompts = pool is Pool.PREFILL or Pool.PREFILL not in self._limits.pools
        tokens = sum(forward.queued.sum_prefill_tokens for forward in observation.forward_passes) if prompts else 0
        backlog = tokens / max(self._demand.load(0.0).fresh, 1.0)
        # Waiting prompts add to the arrivals until new replicas have processed them.
        highest += backlog / max(MERGE_WINDOW, self._startup(pool, observation))
        enough = sizer.at(highest).fewest(COVERED_SHARE)
        return PoolState(
            sizer=sizer,
            ready=counts.ready,
            asked=asked,
            startup=self._startup(pool, observation),
            gpus=self._limits.gpus(pool, observation.capabilities) or 1,
            least=least,
            most=max(least, asked, enough),
            backlog=backlog,
        )

    def _decide(
        self, next_tick: Tick, observation: Observation, forecast: Forecast, plans: Mapping[Pool, PoolPlan]
    ) -> Effects:
        desired = {pool: plan.replicas for pool, plan in plans.items()}
        current = {pool: plan.current for pool, plan in plans.items()}
        startup = self._longest_startup(observation)
        bounded = self._budgeted.of(plans, observation, startup)
        final = self._limits.in_turn(bounded, self._drawing(observation, current), observation.capabilities)
        up = [pool for pool in final if final[pool] > current[pool]]
        down = [pool for pool in final if final[pool] < current[pool]]
        if up and down:
            reason = Reason.REBALANCE
        elif up or down:
            reason = Reason.SCALE_UP if up else Reason.SCALE_DOWN
        elif final != desired:
            reason = Reason.HOLD_BUDGET
        else:
            held = {plan.reason for plan in plans.values()}
            order = (Reason.HOLD_PENDING, Reason.HOLD_STABILIZING)
            reason = next((reason for reason in order if reason in held), Reason.NO_CHANGE)
        decision = Decision(replicas=final, reason=reason.value) if up or down else None
        promise = self._promise if self._config.gpu_price is None else None
        at_risk = ""
        if promise is not None:
            at_risk = risk(
                promise,
                plans,
                final,
                observation.workers,
                beyond=lambda replicas: self._limits.beyond(replicas, observation.capabilities),
                startup=startup,
                constant_replicas=lambda: self._constant_replicas(observation, plans),
            )
        explanation = explain(
            reason,
            observation,
            demand=self._demand,
            forecast=forecast,
            plans=plans,
            final=final,
            losses=self._forecaster.losses(),
            horizon=self._horizon(observation),
            promise=promise,
            hold=self._hold,
            at_risk=at_risk,
        )
        return Effects(next_tick=next_tick, decision=decision, explanation=explanation)

    def _drawing(self, observation: Observation, asked: Mapping[Pool, int]) -> dict[Pool, int]:
        """Replicas that draw power: the requested ones, and existing ones that are to go."""
        return {pool: max(count, observation.workers[pool].ready) for pool, count in asked.items()}

    def _idle_after(self, observation: Observation, forecast: Forecast) -> float:
        """Seconds without a request after which none is expected: an interval, a multiple of the recent pauses, or the
        time for which the first burst of a new graph is still expected.

        Replicas are held no longer than an unobserved burst would be expected: after that, a start costs less.
        """
        pause = PAUSES * self._demand.longest_pause(observation.now)
        held = min(pause, UNSEEN * self._horizon(observation))
        return max(float(self._config.throughput_adjustment_interval_seconds), held, forecast.unseen)

    def _idle(self, next_tick: Tick, observation: Observation) -> Effects:
        """No request for a whole interval: scale to the minimum at once, and stop holding replicas."""
        least = {pool: self._least_of(pool) for pool in self._limits.pools}
        self._hold_times.observe(Needed(observation.now, 0.0, least))
        self._hold_times.forget(observation.now)
        return self._least(next_tick, observation)

    def _before_traffic(self, next_tick: Tick, observation: Observation) -> Effects:
        if self._demand.quiet < self._config.throughput_adjustment_interval_seconds:
            return Effects(next_tick=next_tick, explanation=_held(Reason.NO_TRAFFIC_YET, "no request has arrived yet"))
        return self._least(next_tick, observation)

    def _least(self, next_tick: Tick, observation: Observation) -> Effects:
        final = self._limits.bounded(
            {pool: self._limits.least(pool) for pool in self._limits.pools}, observation.capabilities
        )
        changed = any(final[pool] != _asked(observation.workers[pool]) for pool in final)
        message = f"no request for {self._demand.quiet:.0f} s: each pool scales to its minimum"
        return Effects(
            next_tick=next_tick,
            decision=Decision(replicas=final, reason=Reason.IDLE.value) if changed else None,
            explanation=_held(Reason.IDLE, message),
        )


def _sample(config: PlannerConfig) -> float:
    """Seconds between two samples of the traffic: a sixth of the throughput interval, within bounds."""
    sixth = config.throughput_adjustment_interval_seconds / 6
    return max(min(max(sixth, SHORTEST_SAMPLE), LONGEST_SAMPLE), float(config.load_adjustment_interval_seconds))


def _leads(startup: float) -> Array:
    """Lead times that are weighed, seconds."""
    until = ahead(startup)
    return np.arange(0.0, until, max(SHORTEST_STEP, until / MOST_STEPS))


def _asked(counts: PoolCounts) -> int:
    """Requested replicas: those that start or are pending will come, so they count."""
    return counts.expected if counts.expected is not None else counts.ready + counts.starting + counts.pending


def _works(observation: Observation) -> bool:
    """Whether any engine computes: the heartbeat of an idle engine has no wall time."""
    return any(forward.wall_time > 0 for forward in observation.forward_passes)


def _held(reason: Reason, message: str, *, needs_passes: bool = False) -> Explanation:
    return Explanation(reason=reason.value, message=message, needs_passes=needs_passes)
