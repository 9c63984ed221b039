"""How long replicas are held: as long as the traffic of the last two hours shows that it pays."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dynamo_planner.core.adaptive.demand import Demand, RateSample
from dynamo_planner.core.adaptive.explanation import explain
from dynamo_planner.core.adaptive.forecast import Forecast
from dynamo_planner.core.adaptive.hold_time import FEWEST, OVER, HoldTime, HoldTimes, Needed
from dynamo_planner.core.adaptive.pools import PoolPlan
from dynamo_planner.core.adaptive.reasons import Reason
from dynamo_planner.core.observation import Observation, Pool


class Sizer:
    """Each replica handles ten requests a second, and none beyond."""

    latency, capacity, reachable = 8.0, 10.0, True

    def share(self, replicas: int) -> float:
        return 1.0 if replicas else 0.0

    def shares(self, rates: np.ndarray, most: int) -> np.ndarray:
        room = 10.0 * np.arange(most + 1).reshape(-1, *[1] * rates.ndim)
        return np.minimum(1.0, room / np.maximum(rates, 1e-9))


def after(
    rate: Callable[[float], float], seconds: float, wave_since: float = math.inf, ahead: float = 0.0
) -> HoldTimes:
    """Plans that give each rate what it needs, like a policy that follows the load; a wave is known `ahead` of time."""
    hold_times = HoldTimes((Pool.DECODE,))
    for at in np.arange(0.0, seconds, 10.0):
        by_wave = bool(at >= wave_since)
        expected = max(rate(at + lead) for lead in np.arange(0.0, ahead + 1, 10.0)) if by_wave else rate(at)
        hold_times.observe(
            Needed(float(at), rate(at), {Pool.DECODE: max(1, int(np.ceil(expected / 10)))}, by_wave=by_wave)
        )
    return hold_times


def hold(hold_times: HoldTimes, startup: float = 60.0) -> HoldTime:
    return hold_times.hold({Pool.DECODE: (Sizer(), 1)}, startup, 0.98, 0.05)  # type: ignore[dict-item]


def bursts(every: float, length: float) -> Callable[[float], float]:
    return lambda at: 40.0 if at % every < length else 10.0


def test_without_a_past_there_is_no_result() -> None:
    few = hold(after(bursts(300, 60), 10.0 * (FEWEST - 1)))
    assert (few.seconds, few.replicas, few.kept) == (0.0, {Pool.DECODE: 0}, None)


def test_replicas_are_held_between_bursts_if_a_start_takes_as_long_as_a_burst() -> None:
    held = hold(after(bursts(300, 60), 3000.0))
    assert held.seconds >= 240
    assert held.replicas == {Pool.DECODE: 4}
    assert held.kept is not None
    assert held.kept > 0.9


def test_a_wave_plan_is_judged_without_the_plans_before_it() -> None:
    without = hold(after(bursts(600, 120), 3600.0))
    assert (without.by_wave, without.seconds >= 480) == (False, True)
    known = hold(after(bursts(600, 120), 3600.0, wave_since=1800.0, ahead=60.0))
    assert known.by_wave
    assert known.seconds < 120, "replicas come before each burst, so none has to be held for the next one"
    few = hold(after(bursts(600, 120), 1800.0 + 10 * (FEWEST - 1), wave_since=1800.0, ahead=60.0))
    assert not few.by_wave


def test_no_replica_is_held_if_starts_take_no_time() -> None:
    assert hold(after(bursts(1200, 300), 3600.0), startup=0.0).seconds < 60


def test_replicas_of_an_ended_load_are_held_no_longer_than_it_pays() -> None:
    fallen = hold(after(lambda at: 40.0 if at < 1800 else 10.0, 3600.0))
    assert fallen.replicas[Pool.DECODE] <= 1


def test_a_slightly_longer_hold_ends_soon() -> None:
    def steps(at: float) -> float:
        return 40.0 if at < 1800 else 10.0

    past = after(steps, 1860.0)
    now = hold(past)
    soon = past.hold({Pool.DECODE: (Sizer(), 1)}, 60.0, 0.98, 0.05, soon=now.seconds)  # type: ignore[dict-item]
    assert (now.replicas, soon.replicas) == ({Pool.DECODE: 4}, {Pool.DECODE: 1})
    assert soon.seconds == now.seconds


def test_of_equally_expensive_lengths_the_one_with_fewest_changes_is_used() -> None:
    assert hold(after(lambda at: 30.0, 3000.0)).seconds == 1920.0


@pytest.mark.parametrize("seconds", [10.0, 60.0, 7200.0, 1e6])
def test_only_the_relevant_part_of_a_past_of_any_length_is_kept(seconds: float) -> None:
    class Counting(HoldTimes):
        taken = 0

        def observe(self, needed: Needed) -> None:
            self.taken += 1
            super().observe(needed)

    hold_times, sizers = Counting((Pool.DECODE,)), {Pool.DECODE: Sizer()}
    past = [RateSample(seconds * number, 25.0, seconds) for number in range(1000)]
    hold_times.recall(past, 10.0, sizers, 8, 0.95)  # type: ignore[arg-type]
    assert hold_times.taken == len(hold_times._past) == OVER / 10
    assert set(hold_times._past.all[-1]) == {3}


def test_a_wave_that_planned_the_whole_past_is_named_too() -> None:
    assert hold(after(bursts(600, 120), 4800.0, wave_since=0.0, ahead=60.0)).by_wave
    assert not hold(after(bursts(600, 120), 4800.0, wave_since=4700.0)).by_wave


def test_plans_are_held_for_a_while_and_not_after_requests_have_stopped() -> None:
    hold_times = after(bursts(300, 60), 120.0)
    assert hold_times.planned(110.0, Pool.DECODE, 60.0) == 4
    assert hold_times.planned(110.0, Pool.DECODE, 50.0) == 1
    hold_times.forget(110.0)
    assert hold_times.planned(110.0, Pool.DECODE, 60.0) == 1


@pytest.mark.parametrize(("by_wave", "over"), [(False, "in the last two hours"), (True, "since the wave was detected")])
def test_the_reason_names_the_held_replicas_and_why_it_pays(by_wave: bool, over: str) -> None:
    sizer: Any = Sizer()
    plan = PoolPlan(
        current=4, replicas=4, reason=Reason.HOLD_STABILIZING, sizer=sizer, brings={}, price=0.0, gpus=2, held=3
    )
    explanation = explain(
        Reason.HOLD_STABILIZING,
        Observation(now=0.0),
        demand=Demand(),
        forecast=Forecast("level", 8.0, 0.0, 60.0),
        plans={Pool.DECODE: plan},
        final={Pool.DECODE: 4},
        losses={},
        horizon=60.0,
        hold=HoldTime(480.0, {Pool.DECODE: 4}, 0.97, by_wave),
    )
    assert (
        f"3 decode of these are held (6 GPUs), needed within the last 480 s: the cheapest of all hold times {over}, "
        "with which 97 % of the requests would have met the targets"
    ) in explanation.message
    assert (explanation.predictions["decode_held"], explanation.predictions["hold_seconds"]) == (3, 480.0)
