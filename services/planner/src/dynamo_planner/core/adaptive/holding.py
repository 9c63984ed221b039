"""How long a replica is held after it was last needed: as long as the graph's own traffic shows that it pays.

Shrinking is a bet that the load does not come back before a new replica could be there. Whether such bets were won is known: what
was needed at each tick is remembered, with the rate that came. So each length of holding is tried on the last two hours: which
replicas there would have been, which share of requests they would have kept, and which GPU time they would have taken, starts
included. The cheapest length that loses hardly any requests is used, and of those that cost hardly more the longest one, since
a decision less is worth something, too. A wave says when the load comes back: once one is used for long enough, lengths are tried
on what was planned with it alone, since bets that were made without it say nothing of bets that are made with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from dynamo_planner.core.adaptive.columns import Columns
from dynamo_planner.core.adaptive.demand import RateSample
from dynamo_planner.core.adaptive.sizing import Sizer
from dynamo_planner.core.observing import Pool

OVER = 7200.0
"""Seconds of the past that lengths are tried on."""
FEWEST = 30
"""Ticks below which the past says too little: five minutes of ten seconds."""
LENGTHS = (30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0)
"""Seconds of holding that are tried, next to none: each twice the one before."""
LOST = 0.4
"""Of the share of requests that may miss, so much may miss because replicas were let go."""
CALM = 0.04
"""So much more GPU time is paid for fewer decisions."""
EVERY = 60.0
"""Seconds between two trials: they take some milliseconds."""

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Needed:
    """What was planned for each pool at a tick, and the rate that came up to it."""

    at: float
    rate: float
    replicas: Mapping[Pool, int]
    by_wave: bool = False
    """whether a wave predicted the load of the plan"""


@dataclass(frozen=True, slots=True)
class HoldTime:
    """Seconds for which replicas are held, and what that would have brought."""

    seconds: float
    replicas: Mapping[Pool, int]
    """that the rates of these seconds needed"""
    kept: float | None = None
    """share of the requests that lengths were tried on; None where too little was observed"""
    by_wave: bool = False
    """whether they were tried on what was planned with a wave alone"""


class Holding:
    """Remembers what was needed, and says how long replicas are held."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools
        self._past = Columns(3 + len(pools))
        """when, rate, whether a wave predicted the load of the plan, and replicas by pool"""
        self._forgotten = self._tried = -inf
        self._seconds, self._kept, self._by_wave = 0.0, 1.0, False

    def observe(self, needed: Needed) -> None:
        """Take what is needed now."""
        self._past.append(needed.at, needed.rate, needed.by_wave, *(needed.replicas[pool] for pool in self._pools))
        self._past.drop(int(np.searchsorted(self._past.all[0], needed.at - OVER, side="right")))

    def recall(
        self, past: Sequence[RateSample], every: float, sizers: Mapping[Pool, Sizer], most: int, share: float
    ) -> None:
        """Take rates from before planning began with what they needed by themselves, as if planned every so many seconds.

        At most `most` replicas of a pool; `share` as in `hold`. What is older than `OVER` would be forgotten at once.
        """
        past = [sample for sample in past if sample.at > past[-1].at - OVER]
        rates, each = np.array([sample.rate for sample in past]), share ** (1 / len(sizers))
        needed = {pool: _needed(sizer.shares(rates, most), each) for pool, sizer in sizers.items()}
        for index, sample in enumerate(past):
            replicas = {pool: int(counts[index]) for pool, counts in needed.items()}
            seconds = min(sample.seconds, OVER)
            ticks = max(1, round(seconds / every))
            for tick in range(ticks):
                at = sample.at - seconds * (ticks - 1 - tick) / ticks
                self.observe(Needed(at, sample.rate, replicas))

    def forget(self, now: float) -> None:
        """What was needed up to now holds nothing any more: requests have ceased. It still shows how long holding pays."""
        self._forgotten = now

    def planned(self, now: float, pool: Pool, seconds: float) -> int:
        """The most that was planned for a pool within the last seconds, this tick included."""
        at, *_ = past = self._past.all
        since = int(np.searchsorted(at, max(now - seconds, self._forgotten)))
        return int(past[self._row(pool), min(since, at.size - 1) :].max())

    def _row(self, pool: Pool) -> int:
        return 3 + self._pools.index(pool)

    def hold(
        self,
        sizers: Mapping[Pool, tuple[Sizer, int]],
        startup: float,
        share: float,
        may_miss: float,
        *,
        soon: float = 0.0,
    ) -> HoldTime:
        """How long to hold what rates needed, and how many that are now; `sizers` with the GPUs of a replica.

        Plans are held for a start-up time in any case. Rates need what keeps `share` of requests; `may_miss` is the share of
        requests that may be late. The replicas are those that are still held in `soon` seconds, should the rate stay.
        """
        if len(self._past) < FEWEST:
            return HoldTime(0.0, dict.fromkeys(sizers, 0))
        at, rates, *_ = past = self._past.all
        now = float(at[-1])
        each = share ** (1 / len(sizers))
        if now - self._tried >= EVERY:
            self._tried = now
            newest = self._with_wave()
            self._by_wave = newest >= FEWEST
            planned = past[:, -newest:] if self._by_wave else past
            plans = {pool: planned[self._row(pool)].astype(np.int64) for pool in sizers}
            history = _History.of(planned[:2], plans, sizers, startup, each)
            self._seconds, self._kept = _cheapest(history, may_miss)
        replicas = dict.fromkeys(sizers, 0)
        if self._seconds:
            since = min(now, max(now + soon - self._seconds, self._forgotten))
            # More is needed at a higher rate.
            highest = rates[np.searchsorted(at, since) :].max(keepdims=True)
            for pool, (sizer, _) in sizers.items():
                # No more than was ever planned, which is what budgets and limits have left.
                most = int(past[self._row(pool)].max())
                replicas[pool] = int(_needed(sizer.shares(highest, most), each)[0])
        return HoldTime(self._seconds, replicas, self._kept, self._by_wave)

    def _with_wave(self) -> int:
        """How many of the newest ticks a wave planned without a break."""
        others = np.flatnonzero(self._past.all[2] == 0)
        return len(self._past) - (int(others[-1]) + 1 if others.size else 0)


def _cheapest(history: _History, may_miss: float) -> tuple[float, float]:
    """Seconds of holding, and the share of requests that would have been kept."""
    tried = [(seconds, *history.tried(seconds)) for seconds in (0.0, *LENGTHS)]
    most = max(kept for _, kept, _ in tried)
    enough = [each for each in tried if each[1] >= most - LOST * may_miss]
    cheapest = min(cost for _, _, cost in enough)
    seconds, kept, _ = max(each for each in enough if each[2] <= (1 + CALM) * cheapest)
    return seconds, kept


def _needed(shares: Floats, share: float) -> Counts:
    """The fewest replicas that keep so large a share at each rate, of `shares` by replicas and rate; else the most there are."""
    enough = shares >= share
    return np.asarray(np.where(enough.any(axis=0), enough.argmax(axis=0), len(shares) - 1))


@dataclass(frozen=True)
class _History:
    """What each pool was planned to have and what rates needed, by tick."""

    step: float
    """seconds between two ticks, on the mean"""
    rates: Floats
    startup: float
    planned: Mapping[Pool, Counts]
    """held for a start-up time, as plans are"""
    needed: Mapping[Pool, Counts]
    """by the rates themselves"""
    shares: Mapping[Pool, Floats]
    """share of requests in time, by replicas and tick"""
    gpus: Mapping[Pool, int]

    @classmethod
    def of(
        cls,
        past: Floats,
        plans: Mapping[Pool, Counts],
        sizers: Mapping[Pool, tuple[Sizer, int]],
        startup: float,
        share: float,
    ) -> Self:
        at, rates = past
        step = float(at[-1] - at[0]) / (at.size - 1)
        planned = {pool: _highest(counts, round(startup / step)) for pool, counts in plans.items()}
        shares = {pool: sizer.shares(rates, int(plans[pool].max())) for pool, (sizer, _) in sizers.items()}
        needed = {pool: _needed(each, share) for pool, each in shares.items()}
        return cls(step, rates, startup, planned, needed, shares, {pool: gpus for pool, (_, gpus) in sizers.items()})

    def tried(self, seconds: float) -> tuple[float, float]:
        """Share of requests kept, and GPUs on the mean, had replicas been held so long."""
        kept, gpus = np.ones(self.rates.size), 0.0
        for pool, planned in self.planned.items():
            held = _highest(self.needed[pool], round(seconds / self.step)) if seconds else planned
            asked = np.maximum(planned, held)
            # What is asked for is there once it was asked for all the while that a start takes.
            there = _lowest(asked, round(self.startup / self.step))
            kept *= self.shares[pool][there, np.arange(self.rates.size)]
            gpus += self.gpus[pool] * float(asked.mean())
        requests = float(self.rates.sum())
        return (float((kept * self.rates).sum()) / requests if requests > 0 else 1.0), gpus


def _highest(values: Counts, steps: int) -> Counts:
    """The highest of each value and so many before it; before the first one lies the same."""
    return np.asarray(maximum_filter1d(values, steps + 1, mode="nearest", origin=steps // 2))


def _lowest(values: Counts, steps: int) -> Counts:
    """The same, the lowest."""
    return np.asarray(minimum_filter1d(values, steps + 1, mode="nearest", origin=steps // 2))
