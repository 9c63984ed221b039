"""The rate to come: several ways to foretell it, and the one that has done best at this distance.

Each way says at each tick what it expects after the time that a new replica needs. When that time has come, it is held against
what came. So nobody has to be told whether traffic is steady, climbs or swings, and the margin is what forecasts were short by.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import exp, inf, sqrt

import numpy as np

from dynamo_planner.core.adaptive.demand import Demand
from dynamo_planner.core.adaptive.harmonic import Wave, find_wave

SHORT = (0.6, 0.8)
"""Being short of the load costs more than being above it: pinball loss at this quantile chooses, and sets the margin.
The first where new replicas are there at once, the second where they need `LONG`: a shortage lasts as long."""
LONG = 300.0
MEMORY = 180
"""Newest forecasts by which a way is judged: half an hour of them, so that what comes seldom is not forgotten at once."""
FEWEST = 6
"""Forecasts that a way must have made before it is judged by them."""
TREND_OVER = (300.0, 180.0, 90.0)
"""Seconds of samples that a trend is taken from."""
STRAIGHT = 1.6
"""Samples may lie so many times further (squared) from a straight line than chance puts them."""
TREND_LASTS = 120.0
"""Seconds after which a trend has lost most of its force: nothing climbs for ever."""
CLEAR = 2.0
"""Standard deviations that a slope must differ from none."""
WAVE_EVERY = 60.0
"""Seconds between two searches for a wave."""
BURSTS = {"short-bursts": 30.0, "long-bursts": 120.0}
"""Seconds after which a burst has lost most of its force, where bursts are what was seen."""
WAYS = ("level", "trend", "wave", *BURSTS)
USUAL_OVER = 1800.0
BETTER = 0.95
"""A way must do so much better than the one in use to take its place."""


@dataclass(slots=True)
class Record:
    """What a way foretold, and how it came out."""

    waiting: deque[tuple[float, float]] = field(default_factory=deque)
    """(when, rate)"""
    errors: deque[float] = field(default_factory=lambda: deque(maxlen=MEMORY))
    """what came, less what was foretold"""

    def loss(self, short: float) -> float | None:
        """Mean pinball loss, requests a second; None before there is enough to judge."""
        if len(self.errors) < FEWEST:
            return None
        return sum(short * e if e > 0 else (short - 1) * e for e in self.errors) / len(self.errors)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The rate by lead time, and what was made of it."""

    way: str
    now: float
    """the rate of this moment"""
    slope: float
    """requests a second, each second"""
    margin: float
    """that forecasts at the horizon were short by"""
    horizon: float
    wave: Wave | None = None
    clock: float = 0.0
    usual: float = 0.0
    """the median of the last half hour"""
    peak: float = inf
    """what the rate was at most in that time, but for its highest twentieth"""

    def at(self, lead: float) -> float:
        """The rate after so many seconds, without margin."""
        if self.way == "wave" and self.wave is not None:
            # What it says of now may be off; that wears off with time.
            off = self.now - self.wave.at(self.clock)
            return max(0.0, self.wave.at(self.clock + lead) + off * exp(-lead / TREND_LASTS))
        if self.way == "trend":
            return max(0.0, self.now + self.slope * TREND_LASTS * (1 - exp(-lead / TREND_LASTS)))
        if self.way in BURSTS:
            # A burst is not what is usual, but it is there now, and ends as bursts do.
            return self.usual + (self.now - self.usual) * exp(-lead / BURSTS[self.way])
        return self.now

    def with_margin(self, lead: float) -> float:
        """The rate after so many seconds, with its share of the margin: errors grow with the root of the distance.

        The margin alone leads no further than rates have been: what forecasts were short by at the foot of a burst is
        nothing to put on top of it.
        """
        rate = self.at(lead)
        return max(rate, min(rate + self.margin * sqrt(min(1.0, lead / self.horizon)), self.peak))

    def needed(self, since: float, until: float, share: float, step: float = 10.0) -> float:
        """The rate that is reached for `share` of the time between two lead times, with margin; 0 asks for the highest."""
        leads = np.linspace(since, until, max(2, min(40, int((until - since) / step) + 1)))
        rates = sorted((self.with_margin(float(lead)) for lead in leads), reverse=True)
        return rates[min(len(rates) - 1, int(share * len(rates)))]


class Forecaster:
    """Foretells the rate of one graph."""

    def __init__(self) -> None:
        self._records = {way: Record() for way in WAYS}
        self._way = "trend"
        self._wave: Wave | None = None
        self._searched = -np.inf
        self._short = SHORT[0]

    def losses(self) -> dict[str, float]:
        """How the ways have done, requests a second off."""
        return {way: loss for way, record in self._records.items() if (loss := record.loss(self._short)) is not None}

    def forecast(self, demand: Demand, now: float, horizon: float) -> Forecast:
        """What to expect; `horizon` is the time that a new replica needs. Call once a sample."""
        self._short = SHORT[0] + (SHORT[1] - SHORT[0]) * min(1.0, horizon / LONG)
        start, slope = _trend(demand, now)
        if now - self._searched >= WAVE_EVERY:
            self._searched = now
            times = np.array([sample.at - sample.seconds / 2 for sample in demand.samples])
            self._wave = find_wave(times, np.array([sample.rate for sample in demand.samples]))
        for record in self._records.values():
            while record.waiting and record.waiting[0][0] <= now:
                record.errors.append(start - record.waiting.popleft()[1])
        ways = [way for way in self._records if way != "wave" or self._wave is not None]
        usual, peak = _usual(demand, now)
        made = {way: Forecast(way, start, slope, 0.0, horizon, self._wave, now, usual) for way in ways}
        for way, forecast in made.items():
            self._records[way].waiting.append((now + horizon, forecast.at(horizon)))
        self._choose(ways)
        errors = sorted(self._records[self._way].errors)
        margin = errors[int(self._short * (len(errors) - 1))] if len(errors) >= FEWEST else 0.0
        return Forecast(self._way, start, slope, max(0.0, margin), horizon, self._wave, now, usual, peak)

    def _choose(self, ways: list[str]) -> None:
        if self._way not in ways:
            self._way = "trend"
        losses = {way: loss for way, loss in self.losses().items() if way in ways}
        own = losses.get(self._way)
        best = min(losses, key=lambda way: losses[way], default=self._way)
        if best != self._way and (own is None or losses[best] < BETTER * own):
            self._way = best


def _usual(demand: Demand, now: float) -> tuple[float, float]:
    """Median and 95th percentile of the last half hour."""
    rates = sorted(sample.rate for sample in demand.samples if sample.at > now - USUAL_OVER)
    return (rates[len(rates) // 2], rates[int(0.95 * (len(rates) - 1))]) if rates else (0.0, 0.0)


def _trend(demand: Demand, now: float) -> tuple[float, float]:
    """The rate of this moment and its slope, requests a second each second; no slope where chance alone could make it.

    Taken from the longest of some windows that a straight line fits as well as chance lets it.
    """
    for window in TREND_OVER:
        newest = demand.recent(now, window)
        if len(newest) < 3:
            break
        times = np.array([sample.at - sample.seconds / 2 for sample in newest])
        rates = np.array([sample.rate for sample in newest])
        off = times - times.mean()
        width = float((off**2).sum())
        slope = float((off * (rates - rates.mean())).sum() / width)
        # Variance of one sample of chance arrivals.
        chance = max(float(rates.mean()), 1 / newest[0].seconds) / newest[0].seconds
        left = float(((rates - rates.mean() - slope * off) ** 2).sum())
        if left > STRAIGHT * chance * (len(newest) - 2) and window > TREND_OVER[-1]:
            continue
        if abs(slope) < CLEAR * sqrt(chance / width):
            break
        return max(0.0, float(rates.mean()) + slope * (now - float(times.mean()))), slope
    return demand.steady(now), 0.0
