"""Benefit and cost of replicas: requests in time against GPU time, over the rates that may come.

Each number of replicas is simulated over the predicted rates, as a flow: a requested replica is ready after its
start-up time, a backlog grows if more prompts arrive than can be computed, and a request that waits in it is late. The
benefit of a number of replicas is the requests in time; its cost is the GPU time, including start-up. Both pools are
weighed together, because a request that misses one target has no value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dynamo_planner.core.adaptive.sizers import Sizer
from dynamo_planner.core.observation import Pool

Array = npt.NDArray[np.float64]

ACCEPTED_PART = 0.995
"""If no number of replicas keeps the share, those that keep this part of the maximum are accepted."""
BEHIND = 2.0
"""Late requests for each one that still waits at the end: at 70 % load, more than two arrive while one is processed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates that may come, with equally likely rows: requests a second, by lead time."""

    leads: Array
    """seconds, evenly spaced"""
    rates: Array
    """by row and lead time"""

    @property
    def step(self) -> float:
        """Seconds between two lead times."""
        return float(self.leads[1] - self.leads[0])

    def within(self, since: float, until: float) -> slice:
        """The lead times in an interval; at least one, even if the interval is shorter than a step."""
        first = min(int(np.searchsorted(self.leads, since)), len(self.leads) - 1)
        return slice(first, max(first + 1, int(np.searchsorted(self.leads, until))))


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """The current state of one pool."""

    sizer: Sizer
    ready: int
    asked: int
    """requested replicas, including those that start or are pending"""
    startup: float
    gpus: int
    """of one replica"""
    least: int
    most: int
    """replicas that are considered"""
    backlog: float = 0.0
    """requests that wait"""


class CostBenefit:
    """Pools under the rates that may come. Numbers of replicas are by pool, in the order of `pools`."""

    def __init__(self, pools: Mapping[Pool, PoolState], rates: Rates, price: float = 0.0) -> None:
        self.pools, self._rates = pools, rates
        self.least = {pool: state.least for pool, state in pools.items()}
        self.asked = {pool: max(state.asked, state.least) for pool, state in pools.items()}
        self.most = {pool: state.most for pool, state in pools.items()}
        self.price = price
        """requests a second in time that a GPU must bring, if GPUs have a price"""
        self._counts = {pool: np.arange(state.least, state.most + 1) for pool, state in pools.items()}
        shares = [self._shares(pool) for pool in pools]
        self._first, self._second = shares[0], shares[1] if len(shares) > 1 else np.ones((1, *rates.rates.shape))
        self._late, self._waits = self._queue(next(iter(pools)))
        gpus = [state.gpus * self._counts[pool] for pool, state in pools.items()]
        self._gpus = gpus[0][:, None] + (gpus[1][None, :] if len(gpus) > 1 else np.zeros((1, 1)))
        self._brings: dict[tuple[float, float], tuple[Array, float]] = {}

    def expecting(self, rates: Array) -> CostBenefit:
        """The same pools under one certain rate by lead time, requests a second."""
        return CostBenefit(self.pools, Rates(leads=self._rates.leads, rates=rates[None]), self.price)

    def brings(self, since: float, until: float) -> Array:
        """Requests in time between two lead times, by the counts of both pools (one column if there is one pool).

        Requests that are late because prompts wait are subtracted independently of the other pool: so a backlog of
        prompts is a reason for more prefill replicas, not for fewer decode replicas.
        """
        return self._between(since, until)[0]

    def comes(self, since: float, until: float) -> float:
        """Predicted requests between two lead times."""
        return self._between(since, until)[1]

    def _between(self, since: float, until: float) -> tuple[Array, float]:
        """Requests in time, and predicted requests. Cached, because a tick repeats the same times."""
        known = self._brings.get((since, until))
        if known is None:
            known = self._brings[since, until] = self._weigh(since, until)
        return known

    def _weigh(self, since: float, until: float) -> tuple[Array, float]:
        chosen = self._rates.within(since, until)
        step, rows = min(self._rates.step, until - since), len(self._rates.rates)
        rates = self._rates.rates[:, chosen]
        weights = rates * step / rows
        first = self._first[:, :, chosen] * weights
        late = (first * self._late[:, :, chosen]).sum(axis=(1, 2))
        late += BEHIND * self._waits[:, chosen][:, -1]
        served = first.reshape(len(first), -1) @ self._second[:, :, chosen].reshape(len(self._second), -1).T
        return np.asarray(served - late[:, None]), float(rates.sum() * step / rows)

    def best(
        self, since: float, until: float, paid: float, low: Mapping[Pool, int], high: Mapping[Pool, int]
    ) -> dict[Pool, int]:
        """The counts within bounds with the highest benefit between two lead times, minus the price of `paid` seconds
        of their GPUs.
        """
        worth = self.brings(since, until) - self.price * paid * self._gpus
        return self._at(np.where(self._inside(low, high), worth, -np.inf))

    def _inside(self, low: Mapping[Pool, int], high: Mapping[Pool, int]) -> npt.NDArray[np.bool_]:
        inside = np.ones(self._gpus.shape, dtype=bool)
        for axis, pool in enumerate(self.pools):
            counts = self._counts[pool]
            within = (counts >= low[pool]) & (counts <= high[pool])
            inside &= within[:, None] if axis == 0 else within[None, :]
        return inside

    def _at(self, worth: Array) -> dict[Pool, int]:
        """The counts of the highest worth; if several are equal, those with the fewest replicas."""
        place = np.unravel_index(int(np.argmax(worth)), worth.shape)
        return {pool: int(self._counts[pool][index]) for pool, index in zip(self.pools, place, strict=False)}

    def cheapest(
        self, since: float, until: float, share: float, low: Mapping[Pool, int], high: Mapping[Pool, int]
    ) -> dict[Pool, int]:
        """The counts within bounds with the fewest GPUs that keep `share` of requests in time; if none do, those that
        keep most.
        """
        brings = self.brings(since, until)
        inside = self._inside(low, high)
        enough = inside & (brings >= share * self.comes(since, until))
        if not enough.any():
            most = np.where(inside, brings, -np.inf).max()
            enough = inside & (brings >= most - (1 - ACCEPTED_PART) * abs(most))
        gpus = np.where(enough, self._gpus, np.inf)
        # Among equal costs, the one that keeps most.
        worth = np.where(gpus == gpus.min(), brings, -np.inf)
        return self._at(worth)

    def share(self, counts: Mapping[Pool, int], since: float, until: float) -> float:
        """Share of the requests between two lead times that counts keep in time; at least 0, and 1 without requests."""
        comes = self.comes(since, until)
        places = self._places(counts)
        kept = self.brings(since, until)[places[0], places[1] if len(places) > 1 else 0]
        return max(0.0, float(kept) / comes) if comes > 0 else 1.0

    def around(self, pool: Pool, counts: Mapping[Pool, int], since: float, until: float) -> dict[int, float]:
        """Requests in time a second between two lead times, with one replica of a pool fewer or more, if considered."""
        brings = self.brings(since, until) / max(until - since, 1e-9)
        places = self._places(counts)
        axis = list(self.pools).index(pool)
        line = brings[:, places[1] if len(places) > 1 else 0] if axis == 0 else brings[places[0]]
        near = (counts[pool] - 1, counts[pool], counts[pool] + 1)
        return {int(n): float(line[i]) for i, n in enumerate(self._counts[pool]) if n in near}

    def _places(self, counts: Mapping[Pool, int]) -> list[int]:
        """Indexes of counts among the considered ones; 0 for smaller counts, as of a pool below its minimum."""
        return [max(0, counts[pool] - int(self._counts[pool][0])) for pool in self.pools]

    def _shares(self, pool: Pool) -> Array:
        """Share of requests within the pool's target if no request waits, by count, row and lead time."""
        counts = self._counts[pool]
        return self.pools[pool].sizer.shares(self._rates.rates, int(counts[-1]))[counts]

    def _queue(self, pool: Pool) -> tuple[Array, Array]:
        """Share of requests that are late because others wait, by count, row and lead time; waiting requests by count
        and lead time.
        """
        state, rates, counts = self.pools[pool], self._rates.rates, self._counts[pool]
        if not state.sizer.queues:
            return np.zeros((len(counts), *rates.shape)), np.zeros((len(counts), rates.shape[1]))
        leads = self._rates.leads
        # Starting replicas are assumed to need half of the start-up time still.
        ready = np.where(leads < state.startup / 2, state.ready, max(state.ready, state.asked))
        serving = np.where(leads >= state.startup, counts[:, None], np.minimum(counts[:, None], ready))
        capacity = (serving * state.sizer.capacity)[:, None, :]
        # The queue after each step: all arrivals beyond the served ones since the queue was last empty.
        beyond = ((rates[None] - capacity) * self._rates.step).cumsum(axis=2)
        after = beyond + np.maximum(state.backlog, np.maximum.accumulate(-beyond, axis=2))
        before = np.concatenate([np.full((*after.shape[:2], 1), state.backlog), after[:, :, :-1]], axis=2)
        # A request that waits longer than the target permits is late; the longer the queue before it, the less time
        # remains.
        late = np.clip(before / np.maximum(capacity * state.sizer.longest_wait, 1e-6), 0.0, 1.0)
        return late, after.mean(axis=1)
