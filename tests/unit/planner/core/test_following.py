"""Plans that follow the load: they know its maximum, but not when it comes; fixed splits are among them."""

import numpy as np
import pytest

from tests.benchmarks.clairvoyant import SLOT, at_least, plans
from tests.benchmarks.following import followers

BURST = np.array([10.0] * 8 + [100.0] * 2 + [10.0] * 6)
TWO = np.array([10.0] * 4 + [100.0] * 2 + [10.0] * 4 + [100.0] * 2 + [10.0] * 4)


def kept(arrivals: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """One replica of each pool keeps 10 requests of a slot, two of each keep all."""
    return {(1, 1): np.minimum(arrivals, 10.0), (1, 2): np.minimum(arrivals, 10.0), (2, 2): arrivals}


def test_only_a_floor_keeps_a_burst_that_ends_while_replicas_start() -> None:
    startup = 2 * SLOT
    result = followers(kept(BURST), BURST, startup)
    assert result[0].attainment == pytest.approx(160 / 340), "one of each, all the while"
    assert result[-1].attainment == pytest.approx(1.0)
    assert result[-1].gpu_hours == pytest.approx((2 * 2 + 14 * 4 + 2 * 2) * SLOT / 3600)
    assert plans(kept(BURST), 340, startup)[-1].gpu_hours < result[-1].gpu_hours / 1.4, "hindsight starts them for it"


def test_a_load_that_lasts_longer_than_a_start_is_followed() -> None:
    lasting = np.array([10.0] * 4 + [100.0] * 12)
    result = followers(kept(lasting), lasting, startup=SLOT)
    followed = at_least(result, 0.8)
    # Observed in one slot, and ready one start later.
    assert followed.attainment == pytest.approx((4 * 10 + 2 * 10 + 10 * 100) / lasting.sum())
    assert followed.gpu_hours == pytest.approx((6 * 2 + 10 * 4 + 2) * SLOT / 3600)


def test_held_replicas_serve_the_next_burst() -> None:
    result = followers(kept(TWO), TWO, startup=2 * SLOT)
    held = at_least(result, 0.6)
    assert held.attainment == pytest.approx((TWO.sum() - 2 * 90) / TWO.sum())
    assert held.gpu_hours < result[-1].gpu_hours


def test_no_plan_exceeds_the_available_gpus() -> None:
    arrivals = np.full(8, 10.0)
    uneven = {(1, 1): np.zeros(8), (1, 2): np.zeros(8), (2, 1): arrivals}
    assert followers(uneven, arrivals, startup=0.0)[-1].gpu_hours == pytest.approx(3 * 8 * SLOT / 3600)


def test_a_plan_in_hindsight_is_never_worse() -> None:
    for arrivals in (BURST, TWO):
        for startup in (0.0, SLOT, 2 * SLOT):
            best = plans(kept(arrivals), int(arrivals.sum()), startup)[-1]
            assert all(
                plan.attainment <= best.attainment + 1e-9 for plan in followers(kept(arrivals), arrivals, startup)
            )
