"""GPU budgets: the numbers of planner.md (c) 5, cases 19 and 20, and properties for all numbers."""

import pytest
from dynamo_shared.api.gpu_budget import BudgetFit, Pair, band_tolerance, bounds, clamp_pair, clamp_single, tolerance
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("asked", "gpus", "floor", "ceiling", "allowed"),
    [
        pytest.param((5, 5), (1, 1), -1, 4, (2, 2), id="shrinks in proportion"),
        pytest.param((10, 1), (8, 1), -1, 20, (2, 1), id="what one pool leaves grows no other"),
        pytest.param((1, 2), (1, 2), 4, 4, (1, 1), id="floor equals ceiling, one replica below"),
        pytest.param((1, 1), (2, 2), 5, 5, (1, 1), id="an odd band that even replicas cannot meet"),
        pytest.param((1, 1), (1, 2), 4, 10, (1, 1), id="below the floor by the tolerance"),
        pytest.param((5, 5), (1, 1), -1, 1, (0, 0), id="too little for both minima"),
        pytest.param((1, 2), (2, 2), 3, 3, (0, 0), id="too little for both minima, with a floor"),
        pytest.param((2, 2), (1, 1), 100, 4, (2, 2), id="a floor above the ceiling changes nothing"),
        pytest.param((1, 1), (1, 1), 6, -1, (3, 3), id="grows in proportion"),
        pytest.param((2, 3), (2, 1), 8, -1, (3, 3), id="what grows takes nothing from the other pool"),
        pytest.param((2, 1), (2, 1), 8, 8, (3, 2), id="grows as far as both have room"),
        pytest.param((0, 0), (1, 1), 5, -1, (2, 3), id="from nothing evenly, the remainder to decode"),
        pytest.param((9, 9), (None, 1), -1, 4, (9, 9), id="unknown GPUs are not clamped"),
        pytest.param((9, 9), (1, 1), -1, -1, (9, 9), id="no bounds"),
    ],
)
def test_pairs(
    asked: tuple[int, int], gpus: tuple[int | None, int], floor: int, ceiling: int, allowed: tuple[int, int]
) -> None:
    result = clamp_pair(*asked, *gpus, min_gpus=floor, max_gpus=ceiling)
    assert result == Pair(*allowed)
    assert clamp_pair(*result, *gpus, min_gpus=floor, max_gpus=ceiling) == result


@pytest.mark.parametrize(
    ("asked", "gpus", "band", "keep", "allowed"),
    [
        (10, 1, (-1, 4), 1, 4),
        (3, 1, (2, 5), 1, 3),
        (2, 4, (3, 3), 1, 0),
        (5, 1, (-1, 2), 3, 0),
        (1, 2, (7, -1), 1, 4),
        (1, 1, (9, 4), 1, 4),
        (0, 2, (3, 3), 0, 1),
        (7, None, (-1, 4), 1, 7),
        (0, 1, (-1, 4), 0, 0),
    ],
)
def test_single_pools(asked: int, gpus: int | None, band: tuple[int, int], keep: int, allowed: int) -> None:
    assert clamp_single(asked, gpus, min_gpus=band[0], max_gpus=band[1], min_endpoint=keep) == allowed


def test_the_tolerance_is_the_largest_known_replica_and_applies_only_between_two_bounds() -> None:
    assert tolerance([1, 0, 2, -1]) == 2
    assert tolerance([]) == 0
    assert band_tolerance(4, 8, [1, 2]) == 2
    assert band_tolerance(-1, 8, [1, 2]) == 0
    assert band_tolerance(4, -1, [1, 2]) == 0


def test_bounds() -> None:
    assert bounds(2, 4, 8, 2) is BudgetFit.WITHIN
    assert bounds(9, 4, 8, 2) is BudgetFit.ABOVE_CEILING
    assert bounds(1, 4, 8, 2) is BudgetFit.BELOW_FLOOR
    assert bounds(10**6, -1, -1, 0) is BudgetFit.WITHIN


REPLICAS = st.integers(0, 200)
GPUS = st.integers(1, 32)
BOUND = st.just(-1) | st.integers(0, 400)
KEEP = st.integers(0, 4)


@given(
    asked=st.builds(Pair, REPLICAS, REPLICAS),
    each=st.builds(Pair, GPUS, GPUS),
    floor=BOUND,
    ceiling=BOUND,
    keep=st.builds(Pair, KEEP, KEEP),
)
def test_a_clamped_pair_is_stable_and_never_above_the_ceiling(
    asked: Pair, each: Pair, floor: int, ceiling: int, keep: Pair
) -> None:
    def clamp(pair: Pair) -> Pair:
        return clamp_pair(
            *pair, *each, min_gpus=floor, max_gpus=ceiling, min_endpoint=keep.prefill, min_decode=keep.decode
        )

    def total(pair: Pair) -> int:
        return pair.prefill * each.prefill + pair.decode * each.decode

    result = clamp(asked)
    assert clamp(result) == result
    assert min(result) >= 0
    if ceiling >= 0:
        assert total(result) <= ceiling
    if 0 <= ceiling < total(asked):
        assert result.prefill <= max(asked.prefill, keep.prefill)
        assert result.decode <= max(asked.decode, keep.decode)
    if 0 <= floor <= ceiling < total(asked) and ceiling >= total(keep):
        assert total(result) >= floor - max(each)
    if result not in {(0, 0), asked}:
        assert result.prefill >= keep.prefill
        assert result.decode >= keep.decode
    if floor >= 0 and ceiling < 0:
        assert total(result) >= floor
    if ceiling < 0 or total(asked) <= ceiling:
        assert result.prefill >= asked.prefill
        assert result.decode >= asked.decode
    if 0 <= floor <= ceiling and total(Pair(*map(max, asked, keep))) <= ceiling:
        assert total(result) >= floor - max(each)
    if total(asked) <= ceiling and floor < 0:
        assert result == asked


@given(REPLICAS, GPUS, BOUND, BOUND, KEEP)
def test_a_clamped_pool_is_stable_and_never_above_the_ceiling(
    replicas: int, gpus: int, floor: int, ceiling: int, keep: int
) -> None:
    def clamp(count: int) -> int:
        return clamp_single(count, gpus, min_gpus=floor, max_gpus=ceiling, min_endpoint=keep)

    result = clamp(replicas)
    assert clamp(result) == result
    if ceiling >= 0:
        assert result * gpus <= ceiling
    if 0 <= floor <= ceiling and ceiling >= keep * gpus and floor >= keep * gpus:
        assert floor - gpus <= result * gpus
    if floor >= 0 and ceiling < 0:
        assert result * gpus >= floor
