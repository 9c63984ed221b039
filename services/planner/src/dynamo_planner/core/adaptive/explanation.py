"""Explains a decision in words and figures: observations, predictions, and the alternatives with their effects."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dynamo_shared.api.gpus import words as gpu_words

from dynamo_planner.core.adaptive.demand import Demand
from dynamo_planner.core.adaptive.forecast import Forecast
from dynamo_planner.core.adaptive.hold_time import HoldTime
from dynamo_planner.core.adaptive.pools import PoolPlan
from dynamo_planner.core.adaptive.promise import Promise
from dynamo_planner.core.adaptive.reasons import Reason
from dynamo_planner.core.adaptive.risk import unreachable
from dynamo_planner.core.decision import Explanation
from dynamo_planner.core.observation import Observation, Pool

WARM_FROM = 60.0
"""Start-up seconds from which spare replicas are reported as a reserve: with shorter start-ups, replicas follow the
load.
"""


def explain(
    reason: Reason,
    observation: Observation,
    *,
    demand: Demand,
    forecast: Forecast,
    plans: Mapping[Pool, PoolPlan],
    final: Mapping[Pool, int],
    losses: Mapping[str, float],
    horizon: float,
    promise: Promise | None = None,
    hold: HoldTime | None = None,
    at_risk: str = "",
) -> Explanation:
    """The explanation of a tick that had all its inputs."""
    sentence = _sentence(reason, forecast, plans, final, horizon) + _held(plans, hold) + _pause(demand, observation.now)
    if observation.traffic is not None and observation.traffic.ended:
        sentence += "; this release counts requests when they end, so growth becomes visible only after the duration of a request"
    options = (option for pool, plan in plans.items() for option in _options(pool, plan, final[pool], promise))
    return Explanation(
        reason=reason.value,
        message="; ".join(filter(None, (sentence, at_risk or unreachable(plans)))),
        at_risk=at_risk,
        inputs=_inputs(observation, forecast, losses),
        predictions={
            "requests_per_second": forecast.at(horizon),
            "isl": demand.isl,
            "osl": demand.osl,
            "horizon_seconds": horizon,
            **_promised(promise, hold),
            **({} if demand.hits is None else {"kv_hit_rate": demand.hits}),
            **_of_pools(plans, final),
        },
        alternatives=tuple(options),
    )


def _inputs(observation: Observation, forecast: Forecast, losses: Mapping[str, float]) -> dict[str, Any]:
    """The observations, and the losses of the prediction methods."""
    inputs: dict[str, Any] = {
        "workers": {pool.value: asdict(counts) for pool, counts in observation.workers.items()},
        "forward_passes": len(observation.forward_passes),
        "startup_seconds": {pool.value: round(seconds, 1) for pool, seconds in observation.startup_seconds.items()},
        "forecast": {
            "way": forecast.way,
            "rate_now": round(forecast.now, 3),
            "slope": round(forecast.slope, 5),
            "off_by": [round(off, 3) for off in forecast.error_range()],
            "period_seconds": round(forecast.wave.period, 1) if forecast.way == "wave" and forecast.wave else None,
            "losses": {way: round(loss, 3) for way, loss in losses.items()},
        },
        "missing": {name: why.value for name, why in observation.missing.items()},
    }
    if observation.traffic is not None:
        inputs["traffic"] = {name: value for name, value in asdict(observation.traffic).items() if value is not None}
    return inputs


def _promised(promise: Promise | None, hold: HoldTime | None) -> dict[str, float]:
    """The aim, the share that was kept recently, and the hold time; only the figures that are known."""
    known = {
        "attainment_aim": promise.aim if promise else None,
        "attainment_of_last_hour": promise.kept if promise else None,
        "hold_seconds": hold.seconds if hold and hold.kept is not None else None,
    }
    return {name: value for name, value in known.items() if value is not None}


def _of_pools(plans: Mapping[Pool, PoolPlan], final: Mapping[Pool, int]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for pool, plan in plans.items():
        figures |= {
            "estimated_ttft_ms" if pool is Pool.PREFILL else "estimated_itl_ms": plan.sizer.latency,
            f"{pool.value}_capacity_requests_per_second": plan.sizer.capacity,
            f"{pool.value}_share_within_target": plan.sizer.share(final[pool]),
            f"{pool.value}_warm_reserve": plan.reserve,
            f"{pool.value}_held": plan.held,
        }
    return figures


def _options(pool: Pool, plan: PoolPlan, taken: int, promise: Promise | None) -> list[dict[str, Any]]:
    """One replica fewer and one more, their effects, and why neither was chosen."""
    options = []
    for replicas in (taken - 1, taken + 1):
        if replicas < 0:
            continue
        option: dict[str, Any] = {
            "pool": pool.value,
            "replicas": replicas,
            "share_within_target": round(plan.sizer.share(replicas), 4),
        }
        gain = None
        if replicas in plan.brings and taken in plan.brings:
            gain = abs(plan.brings[replicas] - plan.brings[taken])
            option |= {"requests_per_second_in_time": round(plan.brings[replicas], 3)}
            if promise is None:
                option |= {"price": round(plan.price, 3)}
        more, limited = replicas > taken, plan.replicas > taken
        why = (
            _why_not(plan, gain, more=more, limited=limited) if promise is None else _why_not_kept(gain, more, limited)
        )
        options.append(option | {"not_taken": why})
    return options


def _why_not_kept(gain: float | None, more: bool, limited: bool) -> str:
    if more:
        return "the GPU budget" if limited else "fewer GPUs are expected to keep the promised share"
    if gain is None:
        return "the minimum of the pool, or a step's limit"
    return "too many requests would miss the target, or the replica was needed recently"


def _why_not(plan: PoolPlan, gain: float | None, *, more: bool, limited: bool) -> str:
    if more:
        if limited:
            return "the GPU budget"
        return "its gain is below its price, or does not last long enough"
    if gain is None:
        return "the minimum of the pool, or a step's limit"
    if gain >= plan.price:
        return "too many requests would miss the target"
    return "held: not unneeded for long enough, or needed again before it could be back"


def _sentence(
    reason: Reason, forecast: Forecast, plans: Mapping[Pool, PoolPlan], final: Mapping[Pool, int], horizon: float
) -> str:
    moves = ", ".join(
        f"{pool.value} {plan.current} -> {final[pool]}"
        if final[pool] != plan.current
        else f"{pool.value} {plan.current}"
        for pool, plan in plans.items()
    )
    load = f"{forecast.now:.1f} requests/s now, {forecast.at(horizon):.1f} in {horizon:.0f} s ({forecast.way})"
    text = f"{reason.value}: {moves}; {load}"
    return text + _reserve(forecast, plans, horizon)


def _part(plans: Mapping[Pool, PoolPlan], counts: Mapping[Pool, int], what: str) -> str:
    """Replicas that are planned for a separate reason, and their GPUs."""
    replicas = " and ".join(f"{count} {pool.value}" for pool, count in counts.items())
    gpus = sum(plans[pool].gpus * count for pool, count in counts.items())
    return f"{replicas} of these are {what} ({gpu_words(gpus)})"


def _held(plans: Mapping[Pool, PoolPlan], hold: HoldTime | None) -> str:
    """Replicas that are held although they are not needed now, for how long, and why that pays; empty if there are
    none.
    """
    held = {pool: plan.held for pool, plan in plans.items() if plan.held}
    if not held or hold is None or hold.kept is None:
        return ""
    over = "since the wave was detected" if hold.by_wave else "in the last two hours"
    return (
        f"; {_part(plans, held, 'held')}, needed within the last {hold.seconds:.0f} s: the cheapest of all hold "
        f"times {over}, with which {100 * hold.kept:.0f} % of the requests would have met the targets"
    )


def _pause(demand: Demand, now: float) -> str:
    """Why replicas are held during a pause; empty if requests arrive, or never paused."""
    longest = demand.longest_pause(now)
    if not demand.quiet or not longest:
        return ""
    return f"; no request for {demand.quiet:.0f} s, but recent pauses lasted up to {longest:.0f} s"


def _reserve(forecast: Forecast, plans: Mapping[Pool, PoolPlan], horizon: float) -> str:
    """The replicas kept warm, their purpose and their cost; empty if there are none."""
    kept = {pool: plan.reserve for pool, plan in plans.items() if plan.reserve}
    if not kept or horizon < WARM_FROM:
        return ""
    if forecast.climbs_without_errors:
        why = "the load rises and may continue to rise in proportion"
    else:
        why = "a start takes as long as a burst"
        if forecast.unseen:
            why += f"; if no burst comes within {forecast.unseen:.0f} s, the reserve shrinks"
    return f"; {_part(plans, kept, 'a warm reserve')} for up to {forecast.highest(horizon):.1f} requests/s, since {why}"
