"""What pools need: the replicas worth starting, those worth keeping, and the number that a pool gets now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dynamo_planner.core.adaptive.cost_benefit import CostBenefit
from dynamo_planner.core.adaptive.reasons import Reason
from dynamo_planner.core.observation import Pool

MERGE_WINDOW = 20.0
"""Seconds: replicas that will be needed within this time are added together, and those that can go within it go
together.
"""
REMOVAL_MARGIN = 0.8
"""Before a replica goes, the rest may miss at most this part of what may miss: otherwise chance brings it back at once.
"""

Counts = dict[Pool, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Numbers of replicas of one pool."""

    current: int
    """already requested, including those that start or are pending"""
    least: int
    up: int
    """including those worth starting; at least `current` and `least`"""
    keep: int
    """worth keeping at this tick"""
    planned: int
    """the highest `keep` within a start-up time, including this tick"""
    enough: int
    """`planned`, and the existing replicas that are held"""

    @property
    def shrinks(self) -> bool:
        """Whether a replica can go."""
        return self.enough < self.current == self.up

    def given(self, *, pending: bool, step: int) -> tuple[int, Reason]:
        """The number that the pool gets now, at most `step` more or fewer, and why. While replicas are pending, none
        are added above the minimum.
        """
        if self.up > self.current:
            if pending and self.current >= self.least:
                return self.current, Reason.HOLD_PENDING
            return min(self.up, self.current + step), Reason.SCALE_UP
        if self.enough < self.current:
            return max(self.enough, self.current - step), Reason.SCALE_DOWN
        return self.current, Reason.HOLD_STABILIZING if self.keep < self.current else Reason.NO_CHANGE

    def held(self, replicas: int) -> int:
        """How many of these the pool has only because of an earlier need."""
        return 0 if self.up > self.current else max(0, replicas - self.planned)


def ahead(startup: float) -> float:
    """Seconds that are predicted: a replica started now is ready after a start-up time, and must then be needed for
    another.
    """
    return startup + max(MERGE_WINDOW, startup)


def by_share(cost_benefit: CostBenefit, startup: float, aim: float) -> tuple[Counts, Counts]:
    """The fewest GPUs that keep the share `aim`: the replicas to start, and those of them to keep."""
    up = cost_benefit.cheapest(startup, startup + MERGE_WINDOW, aim, cost_benefit.asked, cost_benefit.most)
    low = _lowest(cost_benefit, up)
    # A replica may go only if it is clearly not needed now, nor when a replacement could be ready.
    sure = 1 - (1 - aim) * REMOVAL_MARGIN
    now, later = (cost_benefit.cheapest(since, ahead(startup), sure, low, up) for since in (0.0, startup))
    return up, {pool: max(now[pool], later[pool]) for pool in up}


def by_price(cost_benefit: CostBenefit, startup: float) -> tuple[Counts, Counts]:
    """The replicas that are worth their price: those to start, and those of them to keep."""
    until = ahead(startup)
    # A replica also costs GPU time while it starts; it must be worth that, and be needed as soon as it is ready.
    worth = cost_benefit.best(startup, until, until, cost_benefit.asked, cost_benefit.most)
    up = cost_benefit.best(startup, startup + MERGE_WINDOW, MERGE_WINDOW, cost_benefit.asked, worth)
    # A removed replica saves its cost until it must be requested again: a start-up time before it is needed.
    return up, cost_benefit.best(0.0, until, max(MERGE_WINDOW, startup), _lowest(cost_benefit, up), up)


def _lowest(cost_benefit: CostBenefit, up: Mapping[Pool, int]) -> Counts:
    """Replicas to be started count as present, even if pending: a pool that is too small does not empty another."""
    return {pool: count if count > cost_benefit.asked[pool] else cost_benefit.least[pool] for pool, count in up.items()}
