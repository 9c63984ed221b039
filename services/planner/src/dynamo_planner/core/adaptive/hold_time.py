"""How long a replica is held after it was last needed: as long as the graph's own traffic shows that holding pays.

Removing a replica is a bet that the load does not return before a new replica could be ready. The outcome of past bets
is known: the need of each tick is kept, with the observed rate. So each hold time is simulated on the last two hours:
which replicas there would have been, which share of requests they would have kept, and how much GPU time they would
have used, including starts. The cheapest hold time that loses hardly any requests is used. Among those that cost hardly
more, the longest is used, because fewer decisions also have a value. A wave predicts when the load returns: when a wave
has been used for long enough, hold times are simulated only on plans that used it, because the outcome of bets without
it does not apply to bets with it.
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
from dynamo_planner.core.adaptive.sizers import Sizer
from dynamo_planner.core.observation import Pool

OVER = 7200.0
"""Seconds of history that hold times are simulated on."""
FEWEST = 30
"""With fewer ticks, the history is too short: 5 minutes of ticks each 10 s, 15 minutes of ticks each 30 s."""
LENGTHS = (30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0)
"""Hold times in seconds that are simulated, in addition to 0: each twice the previous one."""
LOST = 0.4
"""Part of the share of requests that may miss which holding too briefly may use up."""
MAX_EXTRA_GPU_TIME = 0.04
"""Share of additional GPU time that is accepted for fewer decisions."""
EVERY = 60.0
"""Seconds between two simulations: one takes some milliseconds."""

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Needed:
    """The plan for each pool at a tick, and the rate observed up to it."""

    at: float
    rate: float
    replicas: Mapping[Pool, int]
    by_wave: bool = False
    """whether the plan used a load predicted by a wave"""


@dataclass(frozen=True, slots=True)
class HoldTime:
    """The hold time in seconds, and its simulated effect."""

    seconds: float
    replicas: Mapping[Pool, int]
    """replicas that the rates of these seconds needed"""
    kept: float | None = None
    """share of the requests in the simulation that were kept; None if the history is too short"""
    by_wave: bool = False
    """whether the simulation used only plans that a wave predicted"""


class HoldTimes:
    """Keeps the past needs, and computes the hold time."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools
        self._past = Columns(3 + len(pools))
        """time, rate, whether a wave predicted the load of the plan, and replicas by pool"""
        self._forgotten = self._tried = -inf
        self._seconds, self._kept, self._by_wave = 0.0, 1.0, False

    def observe(self, needed: Needed) -> None:
        """Add the current need."""
        self._past.append(needed.at, needed.rate, needed.by_wave, *(needed.replicas[pool] for pool in self._pools))
        self._past.drop(int(np.searchsorted(self._past.all[0], needed.at - OVER, side="right")))

    def recall(
        self, past: Sequence[RateSample], every: float, sizers: Mapping[Pool, Sizer], most: int, share: float
    ) -> None:
        """Add rates from before planning began, with the replicas that they needed, as if planned every `every`
        seconds.

        At most `most` replicas of a pool; `share` as in `hold`. Samples older than `OVER` are ignored.
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
        """Stop holding replicas for needs before `now`, because requests have ceased. The history still serves the
        simulation.
        """
        self._forgotten = now

    def planned(self, now: float, pool: Pool, seconds: float) -> int:
        """The highest plan for a pool within the last seconds, including this tick."""
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
        """The hold time, and the replicas held now; `sizers` with the GPUs of a replica.

        Plans are held for a start-up time in any case. A rate needs the replicas that keep `share` of requests;
        `may_miss` is the share of requests that may be late. The replicas are those still held in `soon` seconds if the
        rate stays constant.
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
            # A higher rate needs more replicas.
            highest = rates[np.searchsorted(at, since) :].max(keepdims=True)
            for pool, (sizer, _) in sizers.items():
                # At most the highest past plan, which budgets and limits permitted.
                most = int(past[self._row(pool)].max())
                replicas[pool] = int(_needed(sizer.shares(highest, most), each)[0])
        return HoldTime(self._seconds, replicas, self._kept, self._by_wave)

    def _with_wave(self) -> int:
        """How many of the newest ticks in a row used a wave."""
        others = np.flatnonzero(self._past.all[2] == 0)
        return len(self._past) - (int(others[-1]) + 1 if others.size else 0)


def _cheapest(history: _History, may_miss: float) -> tuple[float, float]:
    """The hold time in seconds, and the simulated share of requests kept."""
    tried = [(seconds, *history.evaluated(seconds)) for seconds in (0.0, *LENGTHS)]
    most = max(kept for _, kept, _ in tried)
    enough = [each for each in tried if each[1] >= most - LOST * may_miss]
    cheapest = min(cost for _, _, cost in enough)
    seconds, kept, _ = max(each for each in enough if each[2] <= (1 + MAX_EXTRA_GPU_TIME) * cheapest)
    return seconds, kept


def _needed(shares: Floats, share: float) -> Counts:
    """The fewest replicas that keep `share` at each rate, from `shares` by replicas and rate; otherwise the maximum."""
    enough = shares >= share
    return np.asarray(np.where(enough.any(axis=0), enough.argmax(axis=0), len(shares) - 1))


@dataclass(frozen=True)
class _History:
    """By tick: the replicas planned for each pool, and those that the rates needed."""

    step: float
    """mean seconds between two ticks"""
    rates: Floats
    startup: float
    planned: Mapping[Pool, Counts]
    """each held for a start-up time, like real plans"""
    needed: Mapping[Pool, Counts]
    """for the observed rates"""
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

    def evaluated(self, seconds: float) -> tuple[float, float]:
        """Share of requests kept, and mean GPUs, if replicas had been held for `seconds`."""
        kept, gpus = np.ones(self.rates.size), 0.0
        for pool, planned in self.planned.items():
            held = _highest(self.needed[pool], round(seconds / self.step)) if seconds else planned
            asked = np.maximum(planned, held)
            # A replica is ready when it has been requested for a full start-up time.
            lowest = _lowest(asked, round(self.startup / self.step))
            kept *= self.shares[pool][lowest, np.arange(self.rates.size)]
            gpus += self.gpus[pool] * float(asked.mean())
        requests = float(self.rates.sum())
        return (float((kept * self.rates).sum()) / requests if requests > 0 else 1.0), gpus


def _highest(values: Counts, steps: int) -> Counts:
    """For each value, the highest of it and the `steps` before; the first value is repeated at the beginning."""
    return np.asarray(maximum_filter1d(values, steps + 1, mode="nearest", origin=steps // 2))


def _lowest(values: Counts, steps: int) -> Counts:
    """The same, for the lowest value."""
    return np.asarray(minimum_filter1d(values, steps + 1, mode="nearest", origin=steps // 2))
