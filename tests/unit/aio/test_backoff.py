"""Delays double up to a limit, have jitter, and start over after a success."""

import pytest
from dynamo_shared.aio import Backoff, delay, spread
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("failures", "chance", "seconds"),
    [(1, 1.0, 1.0), (1, 0.0, 0.5), (2, 1.0, 2.0), (4, 1.0, 8.0), (5, 1.0, 10.0), (5, 0.5, 7.5), (10_000, 1.0, 10.0)],
)
def test_a_delay_doubles_up_to_the_maximum(failures: int, chance: float, seconds: float):
    assert delay(failures, 1.0, 10.0, lambda: chance) == seconds


@given(st.integers(-3, 10**9), st.floats(0.001, 10), st.floats(0.001, 100), st.floats(0, 1))
def test_a_delay_is_at_most_the_maximum_and_at_least_half_of_the_first(
    failures: int, first: float, last: float, chance: float
):
    waited = delay(failures, first, last, lambda: chance)
    assert min(first, last) / 2 <= waited <= last
    assert waited <= delay(failures + 1, first, last, lambda: 1.0)


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 1.6), (0.5, 1.8), (1.0, 2.0)])
def test_jitter_stays_within_its_bounds(chance: float, seconds: float):
    assert spread(2.0, least=0.8, randomness=lambda: chance) == pytest.approx(seconds)


def test_a_success_starts_over():
    backoff = Backoff(1.0, 60.0, lambda: 1.0)
    assert [backoff.next(), backoff.next(), backoff.next()] == [1.0, 2.0, 4.0]
    assert backoff.failures == 3
    backoff.reset()
    assert (backoff.failures, backoff.next()) == (0, 1.0)


def test_the_default_source_of_randomness_is_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dynamo_shared.aio.backoff.random.random", lambda: 0.5)
    assert spread(4.0) == 3.0


@pytest.mark.parametrize(("seconds", "is_success"), [(0.0, False), (7.9, False), (8.0, True), (float("-inf"), False)])
def test_work_that_fails_soon_is_not_a_success(seconds: float, is_success: bool):
    backoff = Backoff(1.0, 8.0)
    backoff.next()
    assert backoff.worked_for(seconds) is is_success
    assert backoff.failures == (0 if is_success else 1)
