"""How many constant replicas would have kept the promise: the fewest that keep the share for the whole last hour.

If following the load keeps too little because replicas start too late, this figure shows the alternative. It is for
users, who know whether the next hour will be like the last one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynamo_planner.core.adaptive.cost_benefit import CostBenefit, PoolState, Rates
from dynamo_planner.core.adaptive.demand import RateSample
from dynamo_planner.core.observation import Pool

FEWEST = 12
"""With fewer samples, the history is too short: two minutes of ten seconds."""


def highest(samples: Sequence[RateSample]) -> float:
    """The highest rate of the samples, requests a second."""
    return max((sample.rate for sample in samples), default=0.0)


def constant_replicas(
    pools: Mapping[Pool, PoolState], samples: Sequence[RateSample], share: float
) -> tuple[dict[Pool, int], float] | None:
    """Replicas by pool, and the share that they would have kept; None if there are too few samples or no requests.

    `pools` limit the numbers that are considered. If none of these keeps `share`, the number that keeps most is
    returned.
    """
    if len(samples) < FEWEST or not any(sample.rate for sample in samples):
        return None
    replicas_over_time = {
        pool: replace(state, startup=0.0, ready=state.most, asked=state.most, backlog=0.0)
        for pool, state in pools.items()
    }
    # Windows may overlap, so the time between samples is used.
    step = (samples[-1].at - samples[0].at) / (len(samples) - 1)
    rates = Rates(
        leads=np.linspace(0.0, step * (len(samples) - 1), len(samples)),
        rates=np.array([[sample.rate for sample in samples]]),
    )
    past, until = CostBenefit(replicas_over_time, rates), len(samples) * step
    counts = past.cheapest(0.0, until, share, past.least, past.most)
    return counts, past.share(counts, 0.0, until)
