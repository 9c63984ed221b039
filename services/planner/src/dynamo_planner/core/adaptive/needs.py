"""What pools need: which replicas are worth starting, which are worth keeping, and what a pool is given of that now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dynamo_planner.core.adaptive.reasons import Reason
from dynamo_planner.core.adaptive.weighing import Weighing
from dynamo_planner.core.observing import Pool

TOGETHER = 20.0
"""Seconds: replicas that will be needed so soon after each other are added at once, and those that can go so soon go at once."""
SURELY = 0.8
"""The rest misses at most so much of what may miss, before a replica goes: else chance brings it back at once."""

Counts = dict[Pool, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Replicas of one pool."""

    current: int
    """asked for already, those that start or wait for room included"""
    least: int
    up: int
    """with those that are worth starting; never fewer than there are, nor than the least"""
    keep: int
    """worth keeping at this tick"""
    planned: int
    """the most that was worth keeping within a start-up time, this tick included"""
    enough: int
    """what is planned, and what is held of those that there are"""

    @property
    def shrinks(self) -> bool:
        """Whether a replica can go."""
        return self.enough < self.current == self.up

    def given(self, *, pending: bool, step: int) -> tuple[int, Reason]:
        """What the pool is given now, at most `step` more or fewer, and why. Where some wait for room, no more are worth it."""
        if self.up > self.current:
            if pending and self.current >= self.least:
                return self.current, Reason.HOLD_PENDING
            return min(self.up, self.current + step), Reason.SCALE_UP
        if self.enough < self.current:
            return max(self.enough, self.current - step), Reason.SCALE_DOWN
        return self.current, Reason.HOLD_STABILIZING if self.keep < self.current else Reason.NO_CHANGE

    def held(self, replicas: int) -> int:
        """How many of these the pool has for what was needed before alone."""
        return 0 if self.up > self.current else max(0, replicas - self.planned)


def ahead(startup: float) -> float:
    """Seconds that rates are predicted for: what starts now is there after a start-up time, and has to be needed for another."""
    return startup + max(TOGETHER, startup)


def by_share(weighing: Weighing, startup: float, aim: float) -> tuple[Counts, Counts]:
    """The fewest GPUs that keep the share `aim`: what to start, and what of it to keep."""
    up = weighing.cheapest(startup, startup + TOGETHER, aim, weighing.asked, weighing.most)
    low = _lowest(weighing, up)
    # A replica that goes must be missed neither now nor when another could be there in its place, and clearly so.
    sure = 1 - (1 - aim) * SURELY
    now, later = (weighing.cheapest(since, ahead(startup), sure, low, up) for since in (0.0, startup))
    return up, {pool: max(now[pool], later[pool]) for pool in up}


def by_price(weighing: Weighing, startup: float) -> tuple[Counts, Counts]:
    """The replicas that are worth their price: what to start, and what of it to keep."""
    until = ahead(startup)
    # A start is paid for as long as it takes; what starts must be worth that, and be needed as soon as it is there.
    worth = weighing.best(startup, until, until, weighing.asked, weighing.most)
    up = weighing.best(startup, startup + TOGETHER, TOGETHER, weighing.asked, worth)
    # Who goes saves what it costs until it has to be asked for again: a start-up time before it is needed.
    return up, weighing.best(0.0, until, max(TOGETHER, startup), _lowest(weighing, up), up)


def _lowest(weighing: Weighing, up: Mapping[Pool, int]) -> Counts:
    """What is to be started counts as there, room or no room: a pool that is too small does not empty another."""
    return {pool: count if count > weighing.asked[pool] else weighing.least[pool] for pool, count in up.items()}
