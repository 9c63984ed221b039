"""What would have kept the promise: the fewest replicas that keep the share of the last hour if they stand all the while.

Where following the load keeps too little, since replicas come too late, this says what it takes instead. It is a figure for
people, who know whether the next hour is like the last one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynamo_planner.core.adaptive.demand import RateSample
from dynamo_planner.core.adaptive.weighing import PoolState, Rates, Weighing
from dynamo_planner.core.observing import Pool

FEWEST = 12
"""Samples below which the past says too little: two minutes of ten seconds."""


def highest(samples: Sequence[RateSample]) -> float:
    """The highest rate of samples, requests a second."""
    return max((sample.rate for sample in samples), default=0.0)


def constant_replicas(
    pools: Mapping[Pool, PoolState], samples: Sequence[RateSample], share: float
) -> tuple[dict[Pool, int], float] | None:
    """Replicas by pool, and the share that they would have kept; None where too little was observed.

    `pools` say which numbers are considered. Where none of these keeps `share`, it is the one that keeps most.
    """
    if len(samples) < FEWEST or not any(sample.rate for sample in samples):
        return None
    there = {
        pool: replace(state, startup=0.0, ready=state.most, asked=state.most, backlog=0.0)
        for pool, state in pools.items()
    }
    # Windows may overlap; what counts is the time between samples.
    step = (samples[-1].at - samples[0].at) / (len(samples) - 1)
    rates = Rates(
        leads=np.linspace(0.0, step * (len(samples) - 1), len(samples)),
        rates=np.array([[sample.rate for sample in samples]]),
    )
    past, until = Weighing(there, rates), len(samples) * step
    counts = past.cheapest(0.0, until, share, past.least, past.most)
    return counts, past.share(counts, 0.0, until)
