"""Budgets as the policy applies them: cases 19 and 20 of the planner.md, section c.5."""

import pytest
from dynamo_planner.core.limits import Limits
from dynamo_planner.core.observing import EngineCapabilities, Pool
from dynamo_shared.api import gpu_budget

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
def test_no_pool_gives_to_another_what_it_asks_for(desired, current, most, allowed):
    limits = Limits(config(prefill_engine_num_gpu=1, decode_engine_num_gpu=1, max_gpu_budget=most))
    unmoved = limits.unmoved({P: desired[0], D: desired[1]}, {P: current[0], D: current[1]}, {})
    assert (unmoved[P], unmoved[D]) == allowed


def test_gpus_are_those_of_the_graph_where_the_configuration_does_not_say():
    limits = Limits(config(prefill_engine_num_gpu=None, decode_engine_num_gpu=None, max_gpu_budget=8))
    able = {P: EngineCapabilities(num_gpu=2), D: EngineCapabilities(num_gpu=2)}
    assert limits.bounded({P: 5, D: 5}, able) == {P: 2, D: 2}


def test_without_any_the_budget_holds_nothing_back():
    limits = Limits(config(prefill_engine_num_gpu=None, max_gpu_budget=2))
    assert limits.bounded({P: 5, D: 5}, {}) == {P: 5, D: 5}
