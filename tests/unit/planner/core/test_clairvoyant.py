"""The plan in hindsight, a reference for planning: it pays for starts, waits for them, and keeps what can be kept."""

import numpy as np
import pytest

from tests.benchmarks.clairvoyant import SLOT, at_least, kept_by_slot, plans, within

MAX_EXTRA_GPU_TIME, BUSY = np.full(8, 10.0), np.array([10.0, 10.0, 10.0, 10.0, 100.0, 100.0, 10.0, 10.0])
KEPT = {(1, 1): np.minimum(MAX_EXTRA_GPU_TIME, BUSY), (2, 2): BUSY}
REQUESTS = int(BUSY.sum())


def test_the_larger_split_runs_only_while_it_keeps_more_requests() -> None:
    best = plans(KEPT, REQUESTS, startup=0.0)[-1]
    assert best.attainment == pytest.approx(1.0)
    assert best.gpu_hours == pytest.approx((6 * 2 + 2 * 4) * SLOT / 3600)


def test_a_start_is_paid_for_and_finished_in_time() -> None:
    best = plans(KEPT, REQUESTS, startup=2 * SLOT)[-1]
    assert best.attainment == pytest.approx(1.0)
    assert best.gpu_hours == pytest.approx((6 * 2 + 2 * 4 + 2 * 2) * SLOT / 3600)


def test_no_replica_is_ready_before_a_start_up_time_has_passed() -> None:
    best = plans(KEPT, REQUESTS, startup=5 * SLOT)[-1]
    assert best.attainment == pytest.approx((REQUESTS - 90) / REQUESTS)


def test_plans_are_selected_by_share_and_by_cost() -> None:
    result = plans(KEPT, REQUESTS, startup=0.0)
    cheapest, best = result[0], result[-1]
    assert at_least(result, 0.2) == cheapest
    assert at_least(result, 0.99) == best
    assert at_least(result, 1.1) == best
    assert within(result, best.gpu_hours) == best
    assert within(result, 0.0) == cheapest


def test_requests_are_counted_at_their_arrival() -> None:
    kept = kept_by_slot([0.0, SLOT - 0.1, SLOT, 3 * SLOT], [True, False, True, True], 3 * SLOT)
    assert kept.tolist() == [1.0, 1.0, 1.0]
