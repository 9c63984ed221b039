import math

import pytest
from dynamo_profiler.profiling.pareto import pareto_front
from hypothesis import given
from hypothesis import strategies as st

values = st.lists(st.tuples(st.integers(0, 20) | st.just(math.nan), st.integers(0, 20) | st.just(math.nan)))


def test_case_25():
    assert pareto_front([math.nan, 10, 20], [100, math.nan, 200]) == [2]


def test_the_largest_gain_of_equal_costs_is_kept():
    assert pareto_front([1, 1, 2, 3], [5, 7, 7, 9]) == [1, 3]


def test_lengths_must_agree():
    with pytest.raises(ValueError, match=r"longer|shorter"):
        pareto_front([1, 2], [1])


@given(values)
def test_no_point_dominates_a_point_of_the_front(points):
    front = pareto_front([x for x, _ in points], [y for _, y in points])
    kept = [points[index] for index in front]
    assert kept == sorted(kept)
    for x, y in points:
        assert math.isnan(x) or math.isnan(y) or any(a <= x and b >= y for a, b in kept)
    assert not any(a <= x and b >= y and (a, b) != (x, y) for x, y in kept for a, b in kept)
