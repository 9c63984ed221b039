"""Budgets as the policy applies them: cases 19 and 20 of the planner.md, section c.5."""

import pytest
from dynamo_planner.core.limits import Limits
from dynamo_planner.core.observation import EngineCapabilities, Pool
from dynamo_shared.api import gpu_budget
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.planner.core.reference_cases import config

P, D = Pool.PREFILL, Pool.DECODE


def pair(replicas, gpus, least, most, **fields):
    limits = Limits(
        config(
            prefill_engine_num_gpu=gpus[0],
            decode_engine_num_gpu=gpus[1],
            min_gpu_budget=least,
            max_gpu_budget=most,
            **fields,
        )
    )
    bounded = limits.bounded({P: replicas[0], D: replicas[1]}, {})
    return bounded[P], bounded[D]


@pytest.mark.parametrize(
    ("replicas", "gpus", "least", "most", "allowed"),
    [
        ((5, 5), (1, 1), -1, 4, (2, 2)),
        ((1, 2), (1, 2), 4, 4, (1, 1)),
        ((1, 1), (2, 2), 5, 5, (1, 1)),
        ((1, 1), (1, 2), 4, 10, (1, 1)),
        ((5, 5), (1, 1), -1, 1, (0, 0)),
        ((1, 2), (2, 2), 3, 3, (0, 0)),
        ((2, 2), (1, 1), 100, 4, (2, 2)),
    ],
)
def test_case_19_two_pools(replicas, gpus, least, most, allowed):
    assert pair(replicas, gpus, least, most) == allowed
    if allowed != (0, 0):
        assert pair(allowed, gpus, least, most) == allowed


@pytest.mark.parametrize(
    ("replicas", "gpus", "band", "keep", "allowed"),
    [(10, 1, (-1, 4), 1, 4), (3, 1, (2, 5), 1, 3), (2, 4, (3, 3), 1, 0), (5, 1, (-1, 2), 3, 0)],
)
def test_case_20_one_pool(replicas, gpus, band, keep, allowed):
    limits = Limits(
        config(
            mode="prefill",
            prefill_engine_num_gpu=gpus,
            min_gpu_budget=band[0],
            max_gpu_budget=band[1],
            min_endpoint=keep,
        )
    )
    assert limits.bounded({P: replicas}, {}) == {P: allowed}


def test_case_20_tolerance_and_bounds():
    assert gpu_budget.tolerance([1, 0, 2, -1]) == 2
    assert [gpu_budget.bounds(total, 4, 8, 2).value for total in (2, 9, 1)] == ["within", "ceiling", "floor"]


@pytest.mark.parametrize(
    ("desired", "current", "most", "allowed"),
    [
        ((12, 6), (4, 4), 8, (4, 4)),
        ((12, 3), (4, 4), 8, (5, 3)),
        ((12, 4), (2, 4), 8, (4, 4)),
        ((12, 6), (1, 1), 8, (5, 3)),
        ((12, 6), (5, 5), 8, (5, 3)),
        ((3, 2), (1, 1), 8, (3, 2)),
        ((5, 5), (1, 1), 1, (0, 0)),
    ],
)
def test_no_pool_gives_away_what_it_needs_itself(desired, current, most, allowed):
    limits = Limits(config(prefill_engine_num_gpu=1, decode_engine_num_gpu=1, max_gpu_budget=most))
    final = limits.bounded_without_transfer({P: desired[0], D: desired[1]}, {P: current[0], D: current[1]}, {})
    assert (final[P], final[D]) == allowed


def test_gpus_come_from_the_graph_if_the_configuration_does_not_set_them():
    limits = Limits(config(prefill_engine_num_gpu=None, decode_engine_num_gpu=None, max_gpu_budget=8))
    able = {P: EngineCapabilities(num_gpu=2), D: EngineCapabilities(num_gpu=2)}
    assert limits.bounded({P: 5, D: 5}, able) == {P: 2, D: 2}


def test_without_known_gpus_the_budget_limits_nothing():
    limits = Limits(config(prefill_engine_num_gpu=None, max_gpu_budget=2))
    assert limits.bounded({P: 5, D: 5}, {}) == {P: 5, D: 5}


def powered(limit, **fields):
    return Limits(config(enable_power_awareness=True, total_gpu_power_limit=limit, max_gpu_budget=-1, **fields))


def drawing(prefill, decode):
    return {P: EngineCapabilities(watts=prefill), D: EngineCapabilities(watts=decode)}


@pytest.mark.parametrize(
    ("desired", "watts", "limit", "allowed"),
    [
        ((4, 4), (500, 500), 4000, (4, 4)),
        ((4, 4), (500, 500), 3999, (3, 4)),
        ((2, 6), (700, 300), 2000, (1, 4)),
        ((0, 0), (500, 500), 1000, (1, 1)),
    ],
)
def test_power_is_a_budget_like_gpus(desired, watts, limit, allowed):
    assert powered(limit).bounded({P: desired[0], D: desired[1]}, drawing(*watts)) == {P: allowed[0], D: allowed[1]}


def test_power_is_also_a_budget_of_a_single_pool():
    assert powered(1600, mode="agg").bounded({D: 5}, {D: EngineCapabilities(watts=500)}) == {D: 3}


def test_the_stricter_of_both_budgets_counts():
    limits = Limits(config(enable_power_awareness=True, total_gpu_power_limit=5000, max_gpu_budget=6))
    able = {pool: EngineCapabilities(num_gpu=1, watts=500) for pool in (P, D)}
    assert limits.bounded({P: 8, D: 8}, able) == {P: 3, D: 3}
    assert limits.beyond({P: 4, D: 4}, able) == "max_gpu_budget is 6"
    assert limits.beyond({P: 8, D: 8}, able) == "max_gpu_budget is 6 and total_gpu_power_limit is 5000"
    assert limits.beyond({P: 3, D: 3}, able) == ""


@pytest.mark.parametrize(
    ("desired", "now", "allowed"),
    [
        ((1, 4), (4, 1), (1, 1)),
        ((1, 4), (1, 1), (1, 4)),
        ((2, 3), (3, 2), (2, 2)),
        ((2, 3), (3, 1), (2, 1)),
        ((3, 2), (2, 2), (3, 2)),
        ((1, 2), (2, 1), (1, 2)),
    ],
)
def test_a_pool_grows_when_the_other_has_released_its_power(desired, now, allowed):
    limits = powered(2500)
    in_turn = limits.in_turn({P: desired[0], D: desired[1]}, {P: now[0], D: now[1]}, drawing(500, 500))
    assert in_turn == {P: allowed[0], D: allowed[1]}


few = st.integers(0, 20)


replicas, power = st.tuples(few, few), st.integers(1, 900)


@given(replicas, replicas, st.tuples(power, power), st.integers(100, 9000))
@examples(200)
def test_the_drawn_power_never_exceeds_the_budget(desired, now, watts, limit):
    limits, able = powered(limit), drawing(*watts)

    def draw(prefill, decode):
        return prefill * watts[0] + decode * watts[1]

    assume(draw(1, 1) <= limit)
    assume(draw(*now) <= limit)
    settled = limits.bounded({P: desired[0], D: desired[1]}, able)
    final = limits.in_turn(settled, {P: now[0], D: now[1]}, able)
    assert draw(max(final[P], now[0]), max(final[D], now[1])) <= limit
    assert limits.in_turn(settled, final, able) == settled, "the next step is the last"


def test_without_a_power_budget_both_pools_move_at_once():
    limits = Limits(config(max_gpu_budget=-1))
    assert limits.in_turn({P: 1, D: 4}, {P: 4, D: 1}, drawing(500, 500)) == {P: 1, D: 4}
