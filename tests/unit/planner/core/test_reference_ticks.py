"""When the policy requests its next call: case 21 of planner.md, section c.5."""

from dataclasses import replace

import pytest
from dynamo_planner.core.reference.policy import Schedule

from tests.unit.planner.core.reference_cases import config, load_only


def both() -> Schedule:
    return Schedule(config(enable_load_scaling=True))


def test_case_21_reactive_alone():
    tick = Schedule(load_only()).start(0.0)
    assert tick.at == 5.0
    assert tick.traffic_window == 5.0
    assert tick.run_load
    assert tick.need_forward_passes
    assert not tick.run_throughput


def test_case_21_a_reactive_tick_needs_no_traffic_where_both_run():
    tick = both().start(0.0)
    assert (tick.at, tick.run_load, tick.run_throughput, tick.traffic_window) == (5.0, True, False, None)


def test_case_21_predictive_ticks_keep_their_cadence():
    schedule = Schedule(config())
    tick = schedule.start(0.0)
    assert (tick.at, tick.run_throughput, tick.run_load, tick.traffic_window) == (60.0, True, False, 60.0)
    assert not tick.need_forward_passes
    assert schedule.done(tick, 60.0).at == 120.0


def test_case_21_deadlines_half_a_second_apart_are_one_tick():
    schedule = both()
    tick, now = schedule.start(0.0), 0.0
    while not tick.run_throughput:
        now = tick.at
        # Each tick is a little late, so that the two cadences drift apart: 5.0, 10.04, ... 55.4.
        tick = schedule.done(tick, now + 0.04)
    assert tick.run_load
    assert tick.need_forward_passes
    assert 59.9 < tick.at <= 60.5


def test_deadlines_further_apart_are_two_ticks():
    schedule = Schedule(config(enable_load_scaling=True, load_adjustment_interval_seconds=7))
    tick, observed = schedule.start(0.0), []
    while tick.at <= 63:
        observed.append((tick.at, tick.run_load, tick.run_throughput))
        tick = schedule.done(tick, tick.at)
    assert observed[-3:] == [(56.0, True, False), (60.0, False, True), (63.0, True, False)]


def test_after_sixty_seconds_both_are_due():
    schedule = both()
    tick = schedule.start(0.0)
    while tick.at < 60:
        tick = schedule.done(tick, tick.at)
    assert tick == replace(tick, at=60.0, run_load=True, run_throughput=True, traffic_window=60.0)
    after = schedule.done(tick, 60.0)
    assert (after.at, after.run_throughput) == (65.0, False)


@pytest.mark.parametrize(
    ("predictor", "fits"), [("constant", False), ("kalman", False), ("arima", True), ("prophet", True)]
)
def test_only_predictive_ticks_of_arima_and_prophet_fit_time_series(predictor: str, fits: bool):
    tick = Schedule(config(load_predictor=predictor)).start(0.0)
    assert (tick.run_throughput, tick.fits_series) == (True, fits)
    tick = Schedule(config(load_predictor=predictor, enable_load_scaling=True)).start(0.0)
    assert (tick.run_load, tick.fits_series) == (True, False)
