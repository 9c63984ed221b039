"""Forecasts: each shape of traffic selects the method that predicts it; margins are past errors; no negative rates."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from dynamo_planner.core.adaptive.demand import Demand
from dynamo_planner.core.adaptive.forecast import Forecast, Forecaster
from dynamo_planner.core.adaptive.harmonic import find_wave
from dynamo_planner.core.observation import Traffic
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples

STEP = 10.0


def traffic(requests: float, seconds: float = STEP) -> Traffic:
    return Traffic(duration=seconds, requests=requests, isl=1000, osl=100)


def follow(
    rate: Callable[[float], float], seconds: float, horizon: float, seed: int = 1, *, missed: bool = False
) -> tuple[Forecast, Forecaster]:
    random, demand, forecaster = np.random.default_rng(seed), Demand(), Forecaster()
    forecast = None
    for now in np.arange(STEP, seconds + 1, STEP):
        mean = np.mean([rate(t) for t in np.linspace(now - STEP, now, 11)])
        demand.observe(float(now), traffic(float(random.poisson(mean * STEP))))
        forecast = forecaster.forecast(demand, float(now), horizon, missed=missed)
    assert forecast is not None
    return forecast, forecaster


def test_steady_traffic_is_predicted_to_stay() -> None:
    forecast, _ = follow(lambda _: 20.0, 900, 120)
    assert forecast.at(120) == pytest.approx(20, rel=0.1)
    low, high = forecast.error_range()
    assert -3 < low < 0 < high < 3


def test_a_climb_is_predicted_to_continue() -> None:
    forecast, forecaster = follow(lambda t: 5 + t / 20, 600, 60)
    assert forecast.way == "trend"
    assert forecast.at(60) == pytest.approx(38, rel=0.1)
    assert forecaster.losses()["trend"] < forecaster.losses()["level"]


def test_waves_are_predicted_before_they_come() -> None:
    def rate(t: float) -> float:
        return 25 - 20 * math.cos(2 * math.pi * t / 600)

    forecast, _ = follow(rate, 1500, 300)
    assert forecast.way == "wave"
    assert forecast.wave is not None
    assert forecast.wave.period == pytest.approx(600, rel=0.03)
    for lead in (60, 150, 300):
        assert forecast.at(lead) == pytest.approx(rate(1500 + lead), abs=5)


def test_waves_of_few_requests_are_predicted_although_chance_hides_a_quarter_of_them() -> None:
    forecast, _ = follow(lambda t: 1.5 - math.cos(2 * math.pi * t / 600), 2400, 120)
    assert forecast.wave is not None
    assert 0.6 < forecast.wave.explained < 0.85
    assert forecast.wave.at(np.array([2700.0, 3000.0])) == pytest.approx([2.5, 0.5], abs=0.5)


@pytest.mark.parametrize("seed", [2, 7, 11, 24])
def test_bursts_are_not_a_wave_since_the_next_may_come_earlier_or_later(seed: int) -> None:
    begins = np.cumsum(np.random.default_rng(seed).uniform(240, 480, 6))
    forecast, _ = follow(lambda t: 30 if any(0 < t - each < 120 for each in begins) else 8, 1320, 120)
    assert forecast.wave is None


def test_bursts_do_not_become_the_forecast() -> None:
    forecast, _ = follow(lambda t: 40 if 30 < t % 317 < 60 else 5, 317 * 5 + 55, 120)
    assert forecast.now > 25
    assert forecast.at(120) < 15


def test_a_jump_is_followed_at_once() -> None:
    forecast, _ = follow(lambda t: 8 if t < 580 else 30, 600, 60)
    assert forecast.now == pytest.approx(30, rel=0.15)


def test_possible_rates_are_as_far_off_as_former_forecasts_were() -> None:
    leads = np.array([0.0, 25.0, 100.0, 400.0])
    known = Forecast("level", 10, 0.0, 100, peak=13, errors=(-4.0,) * 10 + (0.0,) * 10 + (4.0,) * 10)
    low, middle, high = known.spread(leads)[[0, 4, -1]]
    assert middle.tolist() == [10, 10, 10, 10]
    assert low.tolist() == [10, 8, 6, 6], "the further away, the further off"
    assert high.tolist() == [10, 12, 13, 13], "no further than rates have been"


def test_the_rate_may_stay_until_forecasts_have_been_judged() -> None:
    climb, stay, straight, grown = Forecast("trend", 10, 0.1, 100, climbs=True).spread(np.array([0.0, 100.0]))
    assert grown[1] == pytest.approx(10 * math.e)
    assert grown[1] > straight[1] == 20 > climb[1] > stay[1] == 10


def test_a_proportional_climb_ends_after_two_doublings_and_when_forecasts_are_judged() -> None:
    steep = Forecast("trend", 10, 1.0, 100, climbs=True)
    assert steep.spread(np.array([0.0, 10.0])).max() == pytest.approx(10 * math.e)
    assert steep.spread(np.array([0.0, 20.0, 30.0]))[-1].tolist() == pytest.approx([10, 40, 40])
    assert len(Forecast("trend", 10, 0.1, 100).spread(np.array([0.0, 10.0]))) == 3
    judged = Forecast("trend", 10, 0.1, 100, climbs=True, peak=100, errors=(0.0,) * 10)
    assert judged.spread(np.array([0.0, 100.0])).max() == judged.at(100)


def test_an_accelerating_rise_is_among_the_possible_rates() -> None:
    def rate(t: float) -> float:
        return 25 - 20 * math.cos(2 * math.pi * t / 600)

    first, _ = follow(rate, 100, 130)
    assert first.climbs_without_errors
    assert first.highest(130) > 0.9 * rate(100 + 130)
    assert first.now + 130 * first.slope < 0.75 * rate(100 + 130), "a straight line falls short"


def test_a_first_burst_is_among_the_possible_rates() -> None:
    rates = Forecast("level", 10, 0.0, 100, errors=(0.0,) * 10, peak=10, burst=10).spread(np.array([0.0, 50.0, 100.0]))
    assert rates.max(axis=0).tolist() == [10, 15, 20]
    assert np.sort(rates[:, -1])[:-1].max() == 10


@pytest.mark.parametrize(("startup", "until"), [(40, 320), (110, 600), (300, 600)])
def test_no_burst_is_expected_after_eight_starts_or_ten_minutes_without_one(startup: float, until: float) -> None:
    expected = [follow(lambda _: 20, seconds, startup)[0].burst for seconds in (100, until - 10, until)]
    assert min(expected[:2]) > 10
    assert expected[2] == 0


def test_short_starts_follow_bursts_and_expect_fewer() -> None:
    assert follow(lambda _: 20, 80, 10)[0].burst == 0
    short, long = (follow(lambda _: 20, 100, lead)[0].burst for lead in (20, 300))
    assert 0 < short < long / 2


def test_a_jump_may_be_the_start_of_a_larger_one() -> None:
    forecast, _ = follow(lambda t: 8 if t < 600 else 18, 610, 10)
    assert forecast.burst > 5
    assert follow(lambda t: 8 if t < 600 else 18, 620, 10)[0].burst == 0


def test_a_step_does_not_count_as_a_burst_if_there_was_none_before() -> None:
    forecast, _ = follow(lambda t: 8 if t < 450 else 0 if t < 480 else 18, 560, 310)
    assert forecast.at(310) > 15


def test_noise_does_not_count_as_a_wave() -> None:
    random = np.random.default_rng(3)
    times = np.arange(0, 1800, STEP)
    assert find_wave(times, random.poisson(200, times.size) / STEP) is None
    assert find_wave(times, np.full(times.size, 7.0)) is None
    assert find_wave(times[:5], np.arange(5.0)) is None


@examples(10)
@given(st.lists(st.integers(0, 500), min_size=1, max_size=80), st.sampled_from([0.1, 10.0, 70.0, 310.0]))
def test_forecasts_are_valid_rates_for_all_traffic(counts: list[int], horizon: float) -> None:
    demand, forecaster = Demand(), Forecaster()
    for index, count in enumerate(counts):
        now = (index + 1) * STEP
        demand.observe(now, traffic(count))
        forecast = forecaster.forecast(demand, now, horizon)
        for lead in (0.0, horizon, 10 * horizon):
            assert 0 <= forecast.at(lead) < 1e4
        rates = forecast.spread(np.array([0.0, horizon, 10 * horizon]))
        assert (rates >= 0).all()
        assert (rates < 1e4).all()


def test_lengths_and_quiet() -> None:
    demand = Demand()
    assert not demand.observe(10, Traffic(duration=10, requests=float("nan"), isl=1, osl=1))
    assert not demand.known
    demand.observe(10, Traffic(duration=10, requests=5, isl=1000, osl=0))
    assert (demand.isl, demand.osl) == (1000, 0)
    demand.observe(20, Traffic(duration=10, requests=5, isl=1000, osl=80))
    assert demand.osl == 80
    for now in (30, 40, 50):
        demand.observe(now, traffic(0))
    assert demand.quiet == 30
    demand.observe(60, traffic(1))
    assert demand.quiet == 0


def test_a_pause_is_remembered_when_requests_have_returned() -> None:
    demand = Demand()
    for index, requests in enumerate((0, 0, 5, 0, 0, 0, 5, 0, 5, 0, 0), start=1):
        demand.observe(index * STEP, traffic(requests))
        assert demand.longest_pause(index * STEP) == (30 if index >= 7 else 0), "none before the first request"
    assert demand.quiet == 20, "a pause that goes on is not one yet"
    assert demand.longest_pause(120 + 7200) == 0


def test_a_repeated_jump_is_expected_to_reach_the_same_rate() -> None:
    def rate(t: float) -> float:
        return 40.0 if t % 400 >= 300 else 8.0

    first, _ = follow(rate, 310, 120)
    assert first.burst > 25, "as much again may come"
    later, _ = follow(rate, 1110, 120)
    assert later.now + later.burst < 50


def test_a_tripled_rate_is_the_burst_itself() -> None:
    before, _ = follow(lambda t: 8.0, 400, 120)
    assert before.burst == pytest.approx(16, rel=0.2)
    after, _ = follow(lambda t: 8.0 if t < 450 else 25.0, 560, 120)
    assert after.burst < 1


def test_after_one_burst_the_next_one_is_expected_to_double_the_rate() -> None:
    before, _ = follow(lambda _: 10, 100, 70)
    assert before.burst == pytest.approx(2 * before.now, rel=0.2)
    after, _ = follow(lambda t: 10 if t < 100 else 40, 300, 70)
    assert after.burst == pytest.approx(after.now, rel=0.2)
    back, _ = follow(lambda t: 10 if t < 100 or t >= 200 else 40, 300, 70)
    assert back.burst == pytest.approx(back.now, rel=0.3), "it is not forgotten"


def test_after_a_pause_a_new_graph_expects_more_than_its_highest_rate() -> None:
    def rate(t: float) -> float:
        return 10 if t < 60 else 20 if t < 100 else 0

    short, paused, later = (follow(rate, seconds, 70)[0].highest(70) for seconds in (110, 120, 560))
    assert short < 20
    assert paused == pytest.approx(3 * 20, rel=0.2)
    assert later < 1, "the first burst is not expected any more"


@pytest.mark.parametrize(
    ("heights", "record"),
    [((10, 20), 0), ((10, 20, 5), 40), ((10, 30, 36, 20), 72), ((1, 20, 10), 40), ((30, 20, 10), 60)],
)
def test_bursts_that_are_missed_may_be_followed_by_a_higher_one(heights: Sequence[int], record: float) -> None:
    def rate(t: float) -> float:
        burst, since = divmod(t, 300)
        return heights[int(burst)] if 50 <= since < 150 and burst < len(heights) else 0

    until = 300.0 * len(heights) + 600
    kept, missed = (follow(rate, until, 70, missed=missed)[0].burst for missed in (False, True))
    assert kept == 0
    assert missed == pytest.approx(record, rel=0.25)


def test_a_climb_over_several_starts_does_not_count_as_a_burst() -> None:
    forecast, _ = follow(lambda t: min(40.0, 10 + t / 10), 400, 70)
    assert forecast.burst == pytest.approx(3 * forecast.usual - forecast.now)


def test_growth_is_a_multiple_of_a_recent_rate_and_is_not_chance() -> None:
    demand = Demand()
    for index, requests in enumerate((100, 110, 310, 120), start=1):
        demand.observe(index * STEP, traffic(requests))
        assert demand.grew(3, within=20) is (index == 3)
    demand.observe(50, traffic(0))
    demand.observe(60, traffic(300))
    assert not demand.grew(3, within=10), "no rate is a multiple of none"
    few = Demand()
    for index, requests in enumerate((1, 3), start=1):
        few.observe(index * STEP, traffic(requests))
    assert not few.grew(3, within=20)
