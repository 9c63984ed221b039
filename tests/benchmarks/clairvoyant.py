"""The best plan in hindsight: all arrivals known, the same start-up times and limits, computed by dynamic programming.

Each split of the GPUs is run through the whole trace once. The requests of a slot that it keeps count for every plan
that has this split in that slot. A plan has one split a slot: starting replicas cost GPU time, and before a start-up
time has passed only the first ones are available. The result is the plan that keeps most requests, less a price for GPU
seconds, and it is exact. A range of prices from high to low gives the plans that no other beats (the convex hull). It
is a plan in hindsight and not a bound: requests that one split leaves in a queue count as in the run of the next split
alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Split = tuple[int, int]
SLOT = 15.0
"""Seconds of one slot: bursts come and go faster than minutes."""
PRICES = 48
"""Plans on the hull that are computed."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Hindsight:
    """A plan: the share of requests that it keeps, and its GPU-hours."""

    attainment: float
    gpu_hours: float


def kept_by_slot(arrivals: Sequence[float], kept: Sequence[bool], seconds: float) -> Array:
    """Requests kept, by the slot in which they arrive."""
    slots = np.minimum((np.asarray(arrivals) // SLOT).astype(int), _slots(seconds) - 1)
    return np.asarray(np.bincount(slots, weights=np.asarray(kept, dtype=float), minlength=_slots(seconds)), dtype=float)


def plans(kept: Mapping[Split, Array], requests: int, startup: float, first: Split = (1, 1)) -> list[Hindsight]:
    """Plans that no other beats, from the cheapest to the one that keeps most. One GPU a replica."""
    splits = sorted(kept)
    table = np.array([kept[split] for split in splits])
    gpus = np.array([sum(split) for split in splits], dtype=float)
    new = np.array([[sum(max(0, b - a) for a, b in zip(old, to, strict=True)) for to in splits] for old in splits])
    progress = _Progress(table, gpus, new, splits.index(first), startup)
    results = {
        (round(plan.attainment, 5), round(plan.gpu_hours, 4)): plan
        for plan in progress.plans(np.geomspace(3.0, 0.0005, PRICES), requests)
    }
    return sorted(results.values(), key=lambda plan: plan.gpu_hours)


def at_least(observed: Sequence[Hindsight], attainment: float) -> Hindsight:
    """The cheapest plan that keeps at least this share; if none does, the one that keeps most."""
    enough = [plan for plan in observed if plan.attainment >= attainment]
    return enough[0] if enough else max(observed, key=lambda plan: plan.attainment)


def within(observed: Sequence[Hindsight], gpu_hours: float) -> Hindsight:
    """The plan that keeps most for at most these GPU-hours; if all need more, the cheapest."""
    fitting = [plan for plan in observed if plan.gpu_hours <= gpu_hours]
    return max(fitting, key=lambda plan: plan.attainment) if fitting else observed[0]


@dataclass(frozen=True)
class _Progress:
    """Requests that splits keep by slot, their costs, and the costs of changes between them."""

    table: Array
    gpus: Array
    new: Array
    """GPUs that start, from split to split"""
    first: int
    startup: float

    def plans(self, prices: Array, requests: int) -> list[Hindsight]:
        """For each price of a GPU second, the plan with most requests kept, less its cost."""
        count, slots = self.table.shape
        fixed, each = int(np.ceil(self.startup / SLOT)), np.arange(len(prices))
        cost = prices[:, None, None] * self.startup * self.new
        paid = prices[:, None] * SLOT * self.gpus
        worth = np.full((len(prices), count), -np.inf)
        worth[:, self.first] = 0.0
        came_from = np.tile(np.arange(count), (slots, len(prices), 1))
        for slot in range(slots):
            if slot >= fixed:
                paths = worth[:, :, None] - cost
                came_from[slot] = paths.argmax(axis=1)
                worth = paths.max(axis=1)
            worth = worth + self.table[:, slot] - paid
        place, seconds, kept = worth.argmax(axis=1), np.zeros(len(prices)), np.zeros(len(prices))
        for slot in reversed(range(slots)):
            before = came_from[slot][each, place]
            kept += self.table[place, slot]
            seconds += SLOT * self.gpus[place] + self.startup * self.new[before, place]
            place = before
        return [Hindsight(float(k / requests), float(s / 3600)) for k, s in zip(kept, seconds, strict=True)]


def _slots(seconds: float) -> int:
    return int(np.ceil(seconds / SLOT))
