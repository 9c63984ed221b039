"""Splits a budget that is too low for the reserves of both pools: as many prefill replicas as decode can follow.

While prompts wait, prefill works at its full capacity, and the prompts computed soon are in time. But if decode cannot
follow, its sequences slow each other down, and all of them are late.
"""

from collections.abc import Callable, Mapping

from dynamo_planner.core.adaptive.sizers import Sizer
from dynamo_planner.core.observation import Pool

Counts = dict[Pool, int]


def split(desired: Counts, least: Counts, sizers: Mapping[Pool, Sizer], fits: Callable[[Counts], bool]) -> Counts:
    """Replicas of each pool between `least`, which fits into the budget, and `desired`."""
    counts = {Pool.PREFILL: desired[Pool.PREFILL], Pool.DECODE: least[Pool.DECODE]}
    while True:
        while counts[Pool.DECODE] < desired[Pool.DECODE] and fits(counts | {Pool.DECODE: counts[Pool.DECODE] + 1}):
            counts[Pool.DECODE] += 1
        prefill, decode = (count * sizers[pool].capacity for pool, count in counts.items())
        if counts[Pool.PREFILL] == least[Pool.PREFILL] or (prefill <= decode and fits(counts)):
            return counts
        counts[Pool.PREFILL] -= 1
