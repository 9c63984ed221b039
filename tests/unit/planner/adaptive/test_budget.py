"""The split of a budget between the reserves of two pools."""

import pytest
from dynamo_planner.core.adaptive.budget import split
from dynamo_planner.core.observation import Pool

from tests.unit.planner.adaptive.test_sizers import decode, prefill

P, D = Pool.PREFILL, Pool.DECODE


@pytest.mark.parametrize(
    ("capacities", "desired", "least", "allowed"),
    [
        ((20, 200), (9, 2), (1, 1), (7, 1)),
        ((25, 170), (9, 2), (1, 1), (6, 2)),
        ((4, 5), (9, 6), (1, 1), (4, 4)),
        ((4, 5), (9, 6), (6, 1), (6, 2)),
        ((4, 5), (9, 6), (1, 5), (3, 5)),
        ((20, 200), (4, 9), (1, 1), (4, 4)),
        ((20, 200), (20, 1), (1, 1), (7, 1)),
        ((20, 5), (9, 2), (1, 1), (1, 2)),
    ],
)
def test_prefill_gets_as_many_as_decode_can_follow(
    capacities: tuple[float, float], desired: tuple[int, int], least: tuple[int, int], allowed: tuple[int, int]
) -> None:
    sizers = {P: prefill(10.0), D: decode(10.0)}
    sizers[P].capacity, sizers[D].capacity = capacities
    counts = split(
        dict(zip((P, D), desired, strict=True)),
        dict(zip((P, D), least, strict=True)),
        sizers,
        lambda replicas: sum(replicas.values()) <= 8,
    )
    assert (counts[P], counts[D]) == allowed
