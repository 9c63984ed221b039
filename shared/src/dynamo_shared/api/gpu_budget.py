"""How many replicas a budget of GPUs allows: pure functions, the same for the planner and for the scaler.

Rules are those of Dynamo's planner (planner.md, section a.8). The ceiling is hard. The floor is not: where both are
set, a total may stay below the floor by the GPUs of one replica (the tolerance), since replicas come whole and
a band narrower than one could otherwise not be met. A bound of -1 means no bound. All arithmetic is whole numbers:
shares are floors of exact fractions, never of floats.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

UNBOUNDED = -1


class BudgetFit(StrEnum):
    """Where a total stands to a budget."""

    WITHIN = "within"
    BELOW_FLOOR = "floor"
    ABOVE_CEILING = "ceiling"
    UNKNOWN = "unknown"
    """Some of the total is not known, so that it may be above the ceiling."""


class Pair(NamedTuple):
    """Replicas of the two pools of a disaggregated graph."""

    prefill: int
    decode: int


def tolerance(gpus_per_replica: Iterable[int]) -> int:
    """GPUs of the largest replica; unknown (0 or less) ones do not count. 0 where none is known."""
    return max((gpus for gpus in gpus_per_replica if gpus > 0), default=0)


def band_tolerance(min_gpus: int, max_gpus: int, gpus_per_replica: Iterable[int]) -> int:
    """How far a total may stay below the floor: the largest replica where both bounds are set, else nothing."""
    if min_gpus < 0 or max_gpus < 0:
        return 0
    return tolerance(gpus_per_replica)


def bounds(total: int, min_gpus: int, max_gpus: int, allowance: int = 0) -> BudgetFit:
    """Where a total of GPUs stands: within iff `min_gpus - allowance <= total <= max_gpus`; the ceiling is asked first."""
    if 0 <= max_gpus < total:
        return BudgetFit.ABOVE_CEILING
    if min_gpus >= 0 and total < min_gpus - allowance:
        return BudgetFit.BELOW_FLOOR
    return BudgetFit.WITHIN


def clamp_single(
    replicas: int, gpus: int | None, *, min_gpus: int = UNBOUNDED, max_gpus: int = UNBOUNDED, min_endpoint: int = 1
) -> int:
    """Replicas of one pool within a budget.

    `gpus` are those of one replica; unknown (None, 0 or less), nothing is changed. `min_endpoint` is what the pool keeps;
    a ceiling that is too low even for that gives 0. A floor that could only be met above the ceiling is met as far as
    the ceiling lets it.
    """
    if gpus is None or gpus <= 0:
        return replicas
    allowance = band_tolerance(min_gpus, max_gpus, (gpus,))
    fit = bounds(replicas * gpus, min_gpus, max_gpus, allowance)
    if fit is BudgetFit.ABOVE_CEILING:
        return 0 if min_endpoint * gpus > max_gpus else max(min_endpoint, max_gpus // gpus)
    if fit is BudgetFit.BELOW_FLOOR:
        grown = max(min_endpoint, _ceil(min_gpus, gpus))
        # Whole replicas may miss the band from below and from above; below it by the tolerance is within it.
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
    """Replicas of both pools within a budget, in the proportion in which they are asked for.

    `prefill_gpus` and `decode_gpus` are those of one replica; where one is unknown (None, 0 or less) nothing is changed.
    `min_endpoint` is what each pool keeps, `min_decode` what decode keeps where that is another number. A ceiling
    too low for both minima gives (0, 0); a floor above the ceiling changes nothing. Above the ceiling no pool grows but to
    what it keeps, below the floor none shrinks. The result is never above the ceiling where the input is above it, and
    giving the result in again changes nothing.
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


def _shrink(asked: Pair, each: Pair, ceiling: int, keep: Pair) -> Pair:
    if ceiling < _total(keep, each):
        return Pair(0, 0)
    share = asked.prefill * ceiling // _total(asked, each)
    prefill = max(keep.prefill, min((ceiling - keep.decode * each.decode) // each.prefill, share))
    # Replicas of many GPUs may leave more than decode asks for.
    decode = min(asked.decode, (ceiling - prefill * each.prefill) // each.decode)
    return Pair(prefill, max(keep.decode, decode))


def _grow(asked: Pair, each: Pair, floor: int, ceiling: int, keep: Pair) -> Pair:
    """More of both in proportion, and fewer of neither; as asked for where what each pool keeps has no room."""
    least, total = Pair(max(asked.prefill, keep.prefill), max(asked.decode, keep.decode)), _total(asked, each)
    # From nothing there is no proportion to keep: half of the GPUs each, and what half a GPU leaves is decode's.
    share = _ceil(asked.prefill * floor, total) if total > 0 else floor // 2 // each.prefill
    if ceiling < 0:
        prefill = max(least.prefill, share)
        return Pair(prefill, max(least.decode, _ceil(floor - prefill * each.prefill, each.decode)))
    if ceiling < _total(least, each):
        return asked
    prefill = max(least.prefill, min(share, (ceiling - least.decode * each.decode) // each.prefill))
    missing = min(_ceil(floor - prefill * each.prefill, each.decode), (ceiling - prefill * each.prefill) // each.decode)
    return Pair(prefill, max(least.decode, missing))


def _total(replicas: Pair, each: Pair) -> int:
    return replicas.prefill * each.prefill + replicas.decode * each.decode


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
