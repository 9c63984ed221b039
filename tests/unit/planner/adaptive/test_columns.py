"""Computations on whole columns give the same numbers as computations row by row."""

import operator
from collections import deque
from collections.abc import Iterable
from functools import reduce

import numpy as np
import pytest
from dynamo_planner.core.adaptive.columns import Columns, total
from dynamo_planner.core.adaptive.forecast import FEWEST, SIMILAR_SHARE, Record
from dynamo_planner.core.adaptive.harmonic import EXPLAINED, find_wave
from dynamo_planner.core.adaptive.hold_time import _highest, _lowest, _needed
from dynamo_planner.core.adaptive.sizers import Sizer
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.planner.adaptive.test_sizers import decode, prefill

NUMBERS = st.floats(-1e6, 1e6)


def in_order(values: Iterable[float]) -> float:
    """The sum with one rounding for each value, as columns have it: from Python 3.12 on, sum() corrects roundings."""
    return reduce(operator.add, values, 0.0)


@examples(20)
@given(st.lists(st.one_of(st.tuples(NUMBERS, NUMBERS), st.integers(0, 90)), max_size=200), st.sampled_from([None, 70]))
def test_rows_keep_their_order_and_the_oldest_are_dropped_first(steps: list[object], most: int | None) -> None:
    columns, expected = Columns(2, most), deque[tuple[float, float]](maxlen=most)
    for step in [*steps, *steps]:
        if isinstance(step, tuple):
            columns.append(*step)
            expected.append(step)
        elif isinstance(step, int):
            count = min(step, len(expected))
            columns.drop(count)
            for _ in range(count):
                expected.popleft()
        assert len(columns) == len(expected)
    assert [tuple(row) for row in columns.all.T] == list(expected)


@examples(20)
@given(st.lists(st.tuples(st.integers(0, 9), NUMBERS), max_size=60), st.integers(0, 9), st.floats(0.5, 0.9))
def test_forecast_methods_are_judged_by_the_same_figures_as_one_by_one(
    outcomes: list[tuple[int, float]], rate: int, short: float
) -> None:
    record = Record()
    for outcome in outcomes:
        record.errors.append(*outcome)
    assert total(record.errors.all[1]) == in_order(error for _, error in outcomes)
    if len(outcomes) < FEWEST:
        assert (record.errors_near(rate), record.loss(short)) == ((), None)
        return
    loss = in_order(short * error if error > 0 else (short - 1) * error for _, error in outcomes)
    nearest = sorted(outcomes, key=lambda outcome: abs(outcome[0] - rate))
    assert record.loss(short) == loss / len(outcomes)
    assert list(record.errors_near(rate)) == [
        error for _, error in nearest[: max(FEWEST, int(SIMILAR_SHARE * len(nearest)))]
    ]


@examples(20)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(0, 90))
def test_windows_end_at_each_value(values: list[int], steps: int) -> None:
    counts = np.array(values)
    windows = [values[max(0, end - steps) : end + 1] for end in range(len(values))]
    assert _highest(counts, steps).tolist() == [max(window) for window in windows]
    assert _lowest(counts, steps).tolist() == [min(window) for window in windows]


@examples(20)
@given(
    st.sampled_from([prefill(1.0), prefill(1.0, target=40.0), decode(1.0), decode(1.0, target=3.0)]),
    st.lists(st.floats(0, 200), min_size=1, max_size=40),
    st.integers(0, 30),
    st.floats(0.8, 0.999),
)
def test_the_highest_rate_needs_most(sizer: Sizer, rates: list[float], most: int, share: float) -> None:
    every = _needed(sizer.shares(np.array(rates), most), share)
    assert _needed(sizer.shares(np.array([max(rates)]), most), share)[0] == every.max()


@pytest.mark.parametrize("made", [prefill, decode])
@pytest.mark.parametrize("rate", [0.0, 0.1, 7.0, 90.0])
def test_a_pool_at_another_rate_equals_a_pool_created_for_that_rate(made: object, rate: float) -> None:
    assert callable(made)
    other, own = made(30.0).at(rate), made(rate)
    assert [other.share(count) for count in (3, 40, 0, 9)] == [own.share(count) for count in (3, 40, 0, 9)]
    assert other.fewest(0.99) == own.fewest(0.99)


def _one_after_another(times: np.ndarray, rates: np.ndarray) -> tuple[float, float, np.ndarray]:
    """The best wave, with a separate fit for each period: the period, its explained share, and its rates."""
    span = float(times[-1] - times[0])
    spread = float(((rates - rates.mean()) ** 2).sum())

    def fitted(period: float) -> tuple[float, float, np.ndarray]:
        angles = 2 * np.pi * times / period
        orders = (1, 2) if span >= 1.25 * period else (1,)
        columns = np.column_stack(
            [np.ones_like(times), *(wave(k * angles) for k in orders for wave in (np.sin, np.cos))]
        )
        pull = 0.02 * times.size * np.diag([0.0] + [1.0] * (columns.shape[1] - 1))
        curve = columns @ np.linalg.solve(columns.T @ columns + pull, columns.T @ rates)
        return period, 1 - float(((rates - curve) ** 2).sum()) / spread, curve

    def best(periods: np.ndarray, *others: tuple[float, float, np.ndarray]) -> tuple[float, float, np.ndarray]:
        return max(*others, *map(fitted, map(float, periods)), key=lambda fit: fit[1])

    wave = best(np.geomspace(12 * span / (times.size - 1), span / 0.75, 48))
    for width in (0.04, 0.01):
        wave = best(np.linspace(wave[0] * (1 - width), wave[0] * (1 + width), 7), wave)
    return wave


@examples(8)
@given(st.integers(30, 400), st.floats(150, 4000), st.floats(0, 20), st.floats(0.0, 6.3), st.integers(0, 2**32 - 1))
def test_all_periods_at_once_give_the_same_wave_as_one_by_one(
    samples: int, period: float, swing: float, phase: float, seed: int
) -> None:
    times = np.linspace(0.0, 10.0 * (samples - 1), samples)
    mean = 25 + swing * np.sin(2 * np.pi * times / period + phase)
    rates = np.random.default_rng(seed).poisson(10 * mean) / 10
    wave, (length, explained, curve) = find_wave(times, rates), _one_after_another(times, rates)
    if wave is None:
        assert explained < EXPLAINED + 1e-9
        return
    assert (wave.period, wave.explained) == pytest.approx((length, explained))
    assert wave.at(times) == pytest.approx(np.maximum(0.0, curve), abs=1e-6)
