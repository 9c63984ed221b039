"""The curves: never falling, exact for straight data, and well-behaved with few, noisy or no data."""

import math
from itertools import pairwise

import numpy as np
import pytest
from dynamo_planner.core.estimator import stacking
from dynamo_planner.core.estimator.monotone import fit
from dynamo_planner.core.estimator.ramps import Array, Kept
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples

LENGTHS = st.floats(1, 1e5, allow_nan=False)
LATENCIES = st.floats(0.01, 1e5, allow_nan=False)
POINTS = st.lists(st.tuples(LENGTHS, LATENCIES), min_size=1, max_size=12)
POINTS2 = st.lists(st.tuples(LENGTHS, LENGTHS, LATENCIES), min_size=1, max_size=10)


@examples(20)
@given(POINTS, st.lists(st.floats(0, 1e6), min_size=2, max_size=10))
def test_longer_inputs_never_take_less(points: list[tuple[float, float]], asked: list[float]) -> None:
    xs, ys = (np.array(column) for column in zip(*points, strict=True))
    surface = fit([xs], ys, knots=(40,))
    values = [surface.at(x) for x in sorted(asked)]
    assert all(math.isfinite(value) and value > 0 for value in values)
    assert all(a <= b * (1 + 1e-12) for a, b in pairwise(values))


@examples(10)
@given(POINTS2, st.tuples(LENGTHS, LENGTHS), st.tuples(st.floats(0, 1e5), st.floats(0, 1e5)))
def test_more_of_either_never_takes_less(
    points: list[tuple[float, float, float]], at: tuple[float, float], more: tuple[float, float]
) -> None:
    a, b, ys = (np.array(column) for column in zip(*points, strict=True))
    surface = fit([a, b], ys, knots=(8, 4), mix=(((0.1, 0.1), 1.0),))
    low, high = surface.at(*at), surface.at(at[0] + more[0], at[1] + more[1])
    assert 0 < low <= high * (1 + 1e-9)


def test_straight_data_is_fitted_exactly_inside_and_outside_its_range() -> None:
    xs = np.array([100.0, 500, 1000, 2000, 4000])
    surface = fit([xs], 10 + 0.02 * xs, knots=(40,))
    for x in (100, 300, 1500, 4000, 8000):
        assert surface.at(x) == pytest.approx(10 + 0.02 * x, rel=1e-3)


def test_a_flat_end_still_rises_beyond_the_data() -> None:
    xs = np.array([1.0, 10, 100, 200, 400])
    surface = fit([xs], np.array([5.0, 10, 50, 50, 50]), knots=(40,), mix=(((0.01,), 1.0),))
    assert surface.at(4000) > 5 * surface.at(400)


def test_nothing_takes_no_time() -> None:
    xs = np.array([1000.0, 2000, 4000, 8000])
    steep = 1e-5 * xs**2  # a straight line would go through 0
    assert fit([xs], steep, knots=(40,)).at(0) >= 1.0
    assert fit([xs], steep, knots=(40,), floor=4.0).at(0) >= 4.0
    assert fit([xs], steep, knots=(40,), floor=1e9).at(1000) == pytest.approx(10, rel=0.3), "a floor too high"


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_smoothed(seed: int) -> None:
    random = np.random.default_rng(seed)
    xs = np.linspace(100, 16000, 33)
    truth = 20 + 0.015 * xs + 4e-7 * xs**2
    noisy = truth * np.exp(random.normal(0, 0.08, xs.size))
    surface = fit([xs], noisy, knots=(40,))
    off = [abs(surface.at(x) / y - 1) for x, y in zip(xs, truth, strict=True)]
    assert np.mean(off) < 0.8 * np.mean(np.abs(noisy / truth - 1))
    assert surface.error == pytest.approx(0.08, rel=0.5), "it knows how far off it is"


def test_curves_of_five_points_and_of_one() -> None:
    xs = np.array([128.0, 1024, 4096, 8192, 16384])
    surface = fit([xs], np.array([12.0, 40, 150, 320, 720]), knots=(40,))
    assert 60 < surface.at(2048) < 100
    assert math.isnan(surface.error)
    single = fit([np.array([1000.0])], np.array([50.0]), knots=(40,))
    assert single.at(1000) == pytest.approx(50, rel=1e-6)
    assert single.at(4000) > 50
    with pytest.raises(ValueError, match="no points"):
        fit([np.array([])], np.array([]), knots=(40,))


def test_at_most_eight_points_are_dropped_as_outliers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each search for one costs dozens of fits, and points may be crafted so that each search succeeds."""
    tried: list[Kept] = []

    def find(_problem: object, _folds: object, kept: Kept, errors: Array, _columns: object) -> object:
        rest = kept.copy()
        rest[len(tried)] = False
        tried.append(rest)
        return (((1.0,), 1.0),), errors, rest

    monkeypatch.setattr(stacking, "_without_outlier", find)
    xs = np.linspace(100, 16000, 300)
    fit([xs], 20 + 0.015 * xs, knots=(40,))
    assert len(tried) == 8
