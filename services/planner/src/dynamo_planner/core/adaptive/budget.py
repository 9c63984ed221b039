"""The replicas that the budget permits.

If it is too low for the reserves of both pools, there are as many prefill replicas as decode can follow. While prompts
wait, prefill works at its full capacity, and the prompts computed soon are in time. But if decode cannot follow, its
sequences slow each other down, and all of them are late.
"""

from collections.abc import Callable, Mapping
from math import inf

from dynamo_planner.core.adaptive.pools import PoolPlan
from dynamo_planner.core.adaptive.sizers import Sizer
from dynamo_planner.core.limits import Limits
from dynamo_planner.core.observation import Observation, Pool

Counts = dict[Pool, int]


class BudgetedReplicas:
    """Replicas in proportion to the plans, unless only the reserve exceeds the budget.

    A replica moves between pools only if that was better for a whole start-up time: it serves nothing while it starts,
    so a single unusual sample moves none.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._moves_since = inf
        """since when the budget requires a move from one pool to another, without a break"""

    def of(self, plans: Mapping[Pool, PoolPlan], observation: Observation, startup: float) -> Counts:
        """The permitted replicas of each pool now; `startup` in seconds."""
        able = observation.capabilities
        desired = {pool: plan.replicas for pool, plan in plans.items()}
        current = {pool: plan.current for pool, plan in plans.items()}
        final = self._limits.bounded(desired, able)
        without_transfer = self._limits.bounded_without_transfer(desired, current, able)

        def fits(replicas: Counts) -> bool:
            return self._limits.bounded(replicas, able) == replicas

        calm = {pool: plan.replicas - plan.reserve for pool, plan in plans.items()}
        if len(plans) > 1 and fits(calm) and not fits(desired):
            sizers = {pool: plan.sizer for pool, plan in plans.items()}
            stay = {pool: min(desired[pool], count) for pool, count in current.items()}
            final = split(desired, calm, sizers, fits)
            without_transfer = split(desired, stay, sizers, fits) if fits(stay) else final
        if final == without_transfer:
            self._moves_since = inf
            return final
        self._moves_since = min(self._moves_since, observation.now)
        return final if observation.now - self._moves_since >= startup else without_transfer


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
