"""Replicas within a budget of GPUs, for the planner and the scaler. Pure.

The rules are those of Dynamo's planner (planner.md, section a.8). The ceiling is hard. The floor is soft: if both bounds
are set, a total may be below the floor by at most the GPUs of one replica (the tolerance), because no total might fit
into a band that is narrower than one replica. A bound of -1 means no bound. All arithmetic uses integers.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

UNBOUNDED = -1


class BudgetFit(StrEnum):
    """Relation of a total to a budget."""

    WITHIN = "within"
    BELOW_FLOOR = "floor"
    ABOVE_CEILING = "ceiling"
    UNKNOWN = "unknown"
    """Part of the total is unknown, so it may be above the ceiling."""


class Pair(NamedTuple):
    """Replicas of the two pools of a disaggregated graph."""

    prefill: int
    decode: int


def tolerance(gpus_per_replica: Iterable[int]) -> int:
    """GPUs of the largest replica; unknown numbers (0 or less) do not count. 0 if all are unknown."""
    return max((gpus for gpus in gpus_per_replica if gpus > 0), default=0)


def band_tolerance(min_gpus: int, max_gpus: int, gpus_per_replica: Iterable[int]) -> int:
    """How much a total may be below the floor: the largest replica if both bounds are set, else 0."""
    if min_gpus < 0 or max_gpus < 0:
        return 0
    return tolerance(gpus_per_replica)


def bounds(total: int, min_gpus: int, max_gpus: int, allowance: int = 0) -> BudgetFit:
    """Relation of a total to the bounds: within iff `min_gpus - allowance <= total <= max_gpus`; the ceiling comes first."""
    if 0 <= max_gpus < total:
        return BudgetFit.ABOVE_CEILING
    if min_gpus >= 0 and total < min_gpus - allowance:
        return BudgetFit.BELOW_FLOOR
    return BudgetFit.WITHIN


def clamp_single(
    replicas: int, gpus: int | None, *, min_gpus: int = UNBOUNDED, max_gpus: int = UNBOUNDED, min_endpoint: int = 1
) -> int:
    """Replicas of one pool within a budget.

    `gpus` are the GPUs of one replica; if unknown (None, 0 or less), nothing changes. `min_endpoint` is the minimum of
    the pool; a ceiling that is too low for it gives 0. A floor that cannot be met below the ceiling is met as far as
    the ceiling allows.
    """
    if gpus is None or gpus <= 0:
        return replicas
    allowance = band_tolerance(min_gpus, max_gpus, (gpus,))
    fit = bounds(replicas * gpus, min_gpus, max_gpus, allowance)
    if fit is BudgetFit.ABOVE_CEILING:
        return 0 if min_endpoint * gpus > max_gpus else max(min_endpoint, max_gpus // gpus)
    if fit is BudgetFit.BELOW_FLOOR:
        grown = max(min_endpoint, _ceil(min_gpus, gpus))
        # Whole replicas may miss the band from below and from above; a total below it by at most the tolerance is
        # within the band.
        nearest = grown if max_gpus < 0 else min(grown, max_gpus // gpus)
        return replicas if nearest < min_endpoint else max(replicas, nearest)
    return replicas


def clamp_pair(
    prefill: int,
    decode: int,
    prefill_gpus: int | None,
    decode_gpus: int | None,
    *,
    min_gpus: int = UNBOUNDED,
    max_gpus: int = UNBOUNDED,
    min_endpoint: int = 1,
    min_decode: int | None = None,
) -> Pair:
    """Replicas of both pools within a budget, in the requested proportion.

    `prefill_gpus` and `decode_gpus` are the GPUs of one replica; if one is unknown (None, 0 or less), nothing changes.
    `min_endpoint` is the minimum of each pool, `min_decode` the minimum of decode if it differs. A ceiling too low for
    both minima gives (0, 0); a floor above the ceiling changes nothing. If the total is above the ceiling, a pool grows
    only to its minimum; if it is below the floor, no pool shrinks. If the input is above the ceiling, the result is
    not, and applying the function to the result changes nothing.
    """
    if prefill_gpus is None or decode_gpus is None or prefill_gpus <= 0 or decode_gpus <= 0:
        return Pair(prefill, decode)
    keep = Pair(min_endpoint, min_endpoint if min_decode is None else min_decode)
    each = Pair(prefill_gpus, decode_gpus)
    total = _total(Pair(prefill, decode), each)
    allowance = band_tolerance(min_gpus, max_gpus, (prefill_gpus, decode_gpus))
    fit = bounds(total, min_gpus, max_gpus, allowance)
    if fit is BudgetFit.ABOVE_CEILING:
        return _shrink(Pair(prefill, decode), each, max_gpus, keep)
    if fit is BudgetFit.BELOW_FLOOR and not 0 <= max_gpus < min_gpus:
        return _grow(Pair(prefill, decode), each, min_gpus, max_gpus, keep)
    return Pair(prefill, decode)


def _shrink(requested: Pair, each: Pair, ceiling: int, keep: Pair) -> Pair:
    if ceiling < _total(keep, each):
        return Pair(0, 0)
    share = requested.prefill * ceiling // _total(requested, each)
    prefill = max(keep.prefill, min((ceiling - keep.decode * each.decode) // each.prefill, share))
    # If replicas have many GPUs, the rest of the budget may suffice for more than the requested decode replicas.
    decode = min(requested.decode, (ceiling - prefill * each.prefill) // each.decode)
    return Pair(prefill, max(keep.decode, decode))


def _grow(requested: Pair, each: Pair, floor: int, ceiling: int, keep: Pair) -> Pair:
    """More replicas in the requested proportion, without fewer of either; as requested if the minima exceed the ceiling."""
    least, total = (
        Pair(max(requested.prefill, keep.prefill), max(requested.decode, keep.decode)),
        _total(requested, each),
    )
    # Zero has no proportion: each pool gets half of the GPUs, and decode gets the rest.
    share = _ceil(requested.prefill * floor, total) if total > 0 else floor // 2 // each.prefill
    if ceiling < 0:
        prefill = max(least.prefill, share)
        return Pair(prefill, max(least.decode, _ceil(floor - prefill * each.prefill, each.decode)))
    if ceiling < _total(least, each):
        return requested
    prefill = max(least.prefill, min(share, (ceiling - least.decode * each.decode) // each.prefill))
    missing = min(_ceil(floor - prefill * each.prefill, each.decode), (ceiling - prefill * each.prefill) // each.decode)
    return Pair(prefill, max(least.decode, missing))


def _total(replicas: Pair, each: Pair) -> int:
    return replicas.prefill * each.prefill + replicas.decode * each.decode


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
