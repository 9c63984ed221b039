"""Which deployment is chosen among simulated ones."""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import pytest
from dynamo_profiler.profiling import selection
from dynamo_profiler.profiling.objective import ServingObjective
from dynamo_profiler.profiling.points import Point
from dynamo_profiler.profiling.selection import Picked, filled, matched, pareto_front
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.profiler.profiling.profiling_world import agg, disagg, objective


def pick(points: list[Point], expected: ServingObjective) -> Picked:
    picked = selection.pick(points, expected)
    assert picked is not None
    return picked


HARDWARE = {"gpuSku": "h200_sxm", "numGpusPerNode": 8}
PLANNER = {"planner": {"optimization_target": "sla", "mode": "disagg"}}


def test_the_highest_throughput_within_the_targets_wins():
    fast = agg(gpus=8, itl=15, rate=5)  # 625 tokens/s of a GPU
    slow = agg(gpus=1, itl=40, rate=2)  # 2000, and too slow
    small = agg(gpus=2, itl=25, rate=1)  # 500
    picked = pick([slow, small, fast], objective(sla={"itl": 30}))
    assert picked.selected.point.engines == fast.engines
    assert picked.selected.meets
    assert picked.selected.point.replicas == {"agg": 2}
    assert picked.selected.point.requests_per_second == 10


def test_idle_gpus_count_as_cost():
    """12 GPUs of 16 leave 4 idle; of equals in use, the one that uses all wins."""
    odd, even = agg(gpus=12, rate=12), agg(gpus=8, rate=7)
    picked = pick([odd, even], objective())
    assert picked.selected.point.engines == even.engines
    assert picked.selected.tokens_per_second_per_gpu == 7 * 1000 / 8


def test_the_fewest_gpus_that_serve_a_rate_are_selected():
    large, small = agg(gpus=8, rate=10), agg(gpus=2, rate=2)
    picked = pick([large, small], objective(workload={"requestRate": 5.0}))
    assert picked.selected.point.gpus == 6
    assert picked.selected.point.replicas == {"agg": 3}
    assert picked.selected.served == 1.0


def test_the_fewest_gpus_that_serve_a_concurrency_are_selected():
    picked = pick([agg(gpus=2, concurrency=20)], objective(workload={"concurrency": 50}))
    assert picked.selected.point.replicas == {"agg": 3}


def test_a_load_above_the_capacity_uses_all_gpus():
    picked = pick([agg(gpus=8, rate=1), agg(gpus=4, rate=1)], objective(workload={"requestRate": 8.0}))
    assert picked.selected.point.gpus == 16
    assert picked.selected.served == 0.5


def test_the_closest_point_is_selected_if_none_meets_the_targets():
    nearer, farther = agg(ttft=100, itl=40), agg(ttft=50, itl=45, rate=9)
    picked = pick([farther, nearer], objective(sla={"ttft": 60, "itl": 20}))
    # 40/20 and 100/60 against 45/20: what is missed worst counts.
    assert picked.selected.point.engines == nearer.engines
    assert not picked.selected.meets


def test_the_duration_of_the_whole_answer_counts_if_it_is_a_target():
    quick, slow = agg(ttft=5000, itl=20), agg(ttft=100, itl=30, rate=3)
    picked = pick([quick, slow], objective(sla={"e2eLatency": 26_000}))
    assert picked.selected.point.latency_ms == quick.latency_ms
    assert picked.selected.meets


@pytest.mark.parametrize(("tune_for", "itl"), [("latency", 10), ("throughput", 40)])
def test_without_targets_the_optimization_type_decides(tune_for: str, itl: float):
    points = [agg(itl=10, rate=1), agg(itl=40, rate=5)]
    picked = pick(points, objective(sla={"optimizationType": tune_for}))
    assert picked.selected.point.itl_ms == itl
    assert picked.selected.meets


def test_a_planner_gets_one_engine_of_each_role():
    point = disagg((4, 2, 4.0), (1, 8, 12.0))
    picked = pick([point], objective(features=PLANNER))
    chosen = picked.selected.point
    assert chosen.replicas == {"prefill": 1, "decode": 1}
    assert chosen.requests_per_second == pytest.approx(0.9 * 4.0)
    assert chosen.tokens_per_second_per_gpu == pytest.approx(0.9 * 4.0 * 1000 / 10)


@pytest.mark.parametrize(
    ("least", "replicas", "enough"),
    [
        ({"min_endpoint": 2}, {"prefill": 2, "decode": 2}, True),
        ({"prefill_min_endpoint": 1, "decode_min_endpoint": 3}, {"prefill": 1, "decode": 3}, True),
        ({"min_endpoint": 2, "decode_min_endpoint": 0}, {"prefill": 2, "decode": 1}, True),
        ({"min_endpoint": 1, "prefill_min_endpoint": 7}, {"prefill": 2, "decode": 1}, False),
    ],
)
def test_a_planner_gets_its_minimum_of_engines_of_each_role(
    least: dict[str, int], replicas: dict[str, int], enough: bool
):
    features = {"planner": {"mode": "disagg", **least}}
    picked = pick([disagg((1, 2, 4.0), (1, 4, 4.0))], objective(features=features))
    assert (picked.selected.point.replicas, picked.selected.enough) == (replicas, enough)


def test_engines_larger_than_the_gpus_are_not_selected():
    assert selection.pick([disagg((1, 8, 1.0), (2, 8, 1.0))], objective()) is None


def test_the_closest_point_uses_all_gpus():
    point = filled(disagg((1, 2, 4.0), (1, 2, 2.0)), objective())
    assert point.gpus == 16
    # 3 x 4 x 0.9 = 10.8 against 5 x 2 x 0.92 = 9.2; 2 and 6 give 7.2.
    assert point.replicas == {"prefill": 3, "decode": 5}


def test_any_number_of_gpus_is_handled_quickly():
    """As many as the field takes: a walk over them would hold up every other request for hours."""
    point = filled(disagg((1, 2, 4.0), (1, 2, 2.0)), objective(hardware={**HARDWARE, "totalGpus": 2**31 - 1}))
    assert point.gpus == 2**31 - 2
    assert point.requests_per_second == pytest.approx((2**30 - 1) * 3.6 * 1.84 / (3.6 + 1.84))


_engines = st.tuples(st.just(1), st.sampled_from([1, 2, 3, 4, 8]), st.floats(0.01, 50))


@given(_engines, _engines, st.integers(1, 64))
def test_the_numbers_of_engines_are_optimal(prefill, decode, gpus):
    point, given_gpus = disagg(prefill, decode), objective(hardware={**HARDWARE, "totalGpus": gpus})
    rates = [
        matched(point, {"prefill": count, "decode": decodes}, 1000).requests_per_second or 0.0
        for count in range(1, gpus + 1)
        if (decodes := (gpus - count * prefill[1]) // decode[1]) > 0
    ]
    assert filled(point, given_gpus).requests_per_second == max(rates, default=point.requests_per_second)


def test_the_slower_side_sets_the_rate():
    point = matched(disagg((1, 1, 4.0), (1, 1, 4.0)), {"prefill": 2, "decode": 1}, 1000)
    assert point.requests_per_second == pytest.approx(0.92 * 4.0)


_points = st.builds(
    agg,
    gpus=st.sampled_from([1, 2, 4, 8, 16]),
    ttft=st.floats(1, 5000),
    itl=st.floats(1, 100),
    rate=st.floats(0.01, 50),
    concurrency=st.integers(1, 512),
)


@given(st.lists(_points, min_size=1, max_size=20), st.sampled_from([{}, {"requestRate": 4.0}, {"concurrency": 90}]))
def test_a_choice_fits_the_gpus_and_meets_the_targets_if_possible(points, workload):
    desired = objective(workload=workload)
    picked = pick(points, desired)
    assert picked.selected.point.gpus <= desired.total_gpus
    kept = [p for p in points if p.ttft_ms <= desired.ttft_ms and p.itl_ms <= desired.itl_ms]
    assert picked.selected.meets == bool(kept)
    if picked.selected.meets and not workload:
        best = max(p.tokens_per_second_per_gpu * (16 // p.gpus) * p.gpus / 16 for p in kept)
        assert picked.selected.tokens_per_second_per_gpu == pytest.approx(best)


def test_the_front_is_ordered_from_low_latency_to_high_throughput():
    points = [agg(itl=10, rate=1), agg(itl=20, rate=2), agg(itl=30, rate=1.5), agg(itl=40, rate=4)]
    front = pick(points, objective()).front
    assert [choice.point.itl_ms for choice in front] == [10, 20, 40]


def test_backends_are_compared():
    other = replace(agg(rate=2), backend="sglang")
    assert pick([agg(rate=1), other], objective(backend="auto")).selected.point.backend == "sglang"


def test_prefill_and_decode_may_come_from_different_points():
    """8 GPUs: the fast prefill comes with too large a decode, the fast decode with too slow a prefill."""
    first = disagg((1, 4, 4.0), (1, 8, 4.0), ttft=250, itl=6)
    second = disagg((1, 1, 1.0), (1, 4, 2.0), ttft=900, itl=8)
    desired = objective(
        hardware={"gpuSku": "h200_sxm", "totalGpus": 8, "numGpusPerNode": 8},
        sla={"ttft": 300, "itl": 10},
        features=PLANNER,
    )
    picked = pick([first, second], desired).selected
    assert picked.meets
    assert (picked.point.ttft_ms, picked.point.itl_ms) == (250, 8)
    assert picked.point.latency_ms == 250 + 8 * 999
    assert picked.point.gpus == 8
    assert picked.point.requests_per_second == pytest.approx(min(4.0 * 0.9, 2.0 * 0.92))


def test_pairs_of_engines_are_tried_once_however_many_points_have_them(monkeypatch: pytest.MonkeyPatch):
    """Three hundred points of the same engines held up the service for a second."""
    tried: list[tuple[Point, ...]] = []

    def recorded(*points: Iterable[Point]) -> list[tuple[Point, ...]]:
        tried.extend(product(*points))
        return tried

    monkeypatch.setattr(selection, "product", recorded)
    point = disagg((1, 1, 1.0), (1, 1, 1.0))
    points = [replace(point, concurrency=float(number)) for number in range(300)]
    assert selection.crossed(points, 100) == points
    assert tried == [(points[0], points[0])]


def test_engines_that_fit_the_planners_minimum_are_preferred():
    features = {"planner": {"mode": "disagg", "min_endpoint": 4}}
    large, small = disagg((1, 2, 4.0), (1, 4, 4.0)), disagg((1, 1, 0.5), (1, 2, 0.5))
    picked = pick([large, small], objective(features=features)).selected
    assert picked.point.replicas == {"prefill": 4, "decode": 4}
    assert picked.point.gpus <= 16
    # Where none fits as often, as many as fit.
    assert pick([large], objective(features=features)).selected.point.replicas == {"prefill": 2, "decode": 2}


@pytest.mark.parametrize(
    ("x", "y", "front"),
    [
        ([math.nan, 10, 20], [100, math.nan, 200], [2]),  # case 25
        ([1, 1, 2, 3], [5, 7, 7, 9], [1, 3]),  # the largest gain of equal costs
    ],
)
def test_points_of_the_front_have_a_larger_gain_than_all_cheaper_ones(x: list[float], y: list[float], front: list[int]):
    assert pareto_front(x, y) == front


def test_lengths_must_agree():
    with pytest.raises(ValueError, match=r"longer|shorter"):
        pareto_front([1, 2], [1])


@given(st.lists(st.tuples(st.integers(0, 20) | st.just(math.nan), st.integers(0, 20) | st.just(math.nan))))
def test_no_point_dominates_a_point_of_the_front(points):
    front = pareto_front([x for x, _ in points], [y for _, y in points])
    kept = [points[index] for index in front]
    assert kept == sorted(kept)
    for x, y in points:
        assert math.isnan(x) or math.isnan(y) or any(a <= x and b >= y for a, b in kept)
    assert not any(a <= x and b >= y and (a, b) != (x, y) for x, y in kept for a, b in kept)
