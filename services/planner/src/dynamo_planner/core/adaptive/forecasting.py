"""The rate to come: several ways to predict it, and the one that has done best at this distance.

Each way says at each tick what it expects after the time that a new replica needs. When that time has come, it is held against
what came. So no setting says whether traffic is steady, climbs or swings, and the margin is what forecasts were short by.
"""

from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, log, sqrt

import numpy as np

from dynamo_planner.core.adaptive.columns import Array, Columns, total
from dynamo_planner.core.adaptive.demand import LENGTHS_OVER, Demand, steady
from dynamo_planner.core.adaptive.harmonic import LIMIT, Wave, find_wave

SHORT = (0.6, 0.8)
"""Being short of the load costs more than being above it: pinball loss at this quantile chooses, and sets the margin.
The first where new replicas are there at once, the second where they need `LONG`: a shortage lasts as long."""
LONG = 300.0
MEMORY = 720
"""Newest forecasts by which a way is judged: half an hour of them, so that what comes seldom is not forgotten at once."""
ALIKE = 0.5
"""Share of forecasts, those made at rates nearest to this one, that show how far off this one may be."""
ROWS = 8
"""Rates that may come, for each lead time: enough to distinguish one case in eight."""
PLACES = (*((row + 0.5) / ROWS for row in range(ROWS - 1)), 0.99, 0.1, 0.9)
"""Quantiles of errors: of each row, and the lowest and highest tenth for reports."""
BELL = (-1.53, -0.89, -0.49, -0.16, 0.16, 0.49, 0.89, 1.53)
"""Eight standard deviations that are as likely as each other."""
FEWEST = 6
"""Forecasts that a way must have made before it is judged by them."""
TREND_OVER = (300.0, 180.0, 90.0)
"""Seconds of samples that a trend is taken from."""
STRAIGHT = 1.6
"""Samples may lie so many times further (squared) from a straight line than chance puts them."""
TREND_LASTS = 60.0
"""Seconds after which a trend has lost most of its force: nothing climbs without end."""
CLEAR = 2.0
"""Standard deviations that a slope must differ from none."""
SURE = 3.0
"""The same, before a climb may go on in proportion: what a chance slope grows to in that way costs many replicas."""
WAVE_EVERY = 60.0
"""Seconds between two searches for a wave."""
BURSTS = {"short-bursts": 30.0, "long-bursts": 120.0}
"""Seconds after which a burst has lost most of its force, where bursts are what was observed."""
BURSTS_END = 0.8
"""That bursts end is believed where it predicts so much better."""
WAYS = ("level", "trend", "wave", *BURSTS)
USUAL_OVER = 7200.0
UNSEEN, UNSEEN_MOST = 8.0, 600.0
"""Start-up times without a burst, and seconds at most, after which none is expected: rarer ones are not worth a replica."""
UNSEEN_GROWTH = 2.0
"""Times the rate that a burst adds where none was observed yet: it triples."""
NEXT_GROWTH = 1.0
"""...and that the next one adds, once the rate has tripled within a start-up time: most of what it grows by has come, so this
one doubles it."""
LONG_START = 60.0
"""Seconds of a start-up from which the whole burst is reckoned with; shorter ones let replicas follow it."""
BURST_ROWS = 1 / 8
"""Share of the rates that may come that such a burst takes the place of."""
CLIMB_MOST = 4.0
"""Times the rate that a climb in proportion leads to at most: two doublings."""
BETTER = 0.95
"""A way must do so much better than the one in use to take its place."""


@dataclass(slots=True)
class Record:
    """What a way predicted, and how it came out."""

    waiting: deque[tuple[float, float, float]] = field(default_factory=deque)
    """(when, rate, rate when it was predicted)"""
    errors: Columns = field(default_factory=lambda: Columns(2, MEMORY))
    """rate when it was predicted, what came less what was predicted"""

    def alike(self, rate: float) -> tuple[float, ...]:
        """Errors of forecasts made at rates like this one; none before there are enough."""
        if len(self.errors) < FEWEST:
            return ()
        rates, errors = self.errors.all
        nearest = np.abs(rates - rate).argsort(kind="stable")
        return tuple(errors[nearest[: max(FEWEST, int(ALIKE * len(nearest)))]].tolist())

    def loss(self, short: float) -> float | None:
        """Mean pinball loss, requests a second; None before there is enough to judge."""
        if len(self.errors) < FEWEST:
            return None
        _, errors = self.errors.all
        return total(np.where(errors > 0, short * errors, (short - 1) * errors)) / len(self.errors)


@dataclass(frozen=True)
class Forecast:
    """The rate by lead time, and what was made of it."""

    way: str
    now: float
    """the rate of this moment"""
    slope: float
    """requests a second, each second"""
    horizon: float
    wave: Wave | None = None
    clock: float = 0.0
    usual: float = 0.0
    """the median of the last two hours"""
    trough: float = 0.0
    peak: float = inf
    """what the rate was at most in that time, but for its highest hundredth"""
    errors: tuple[float, ...] = ()
    """of forecasts at the horizon, as they came out of late"""
    climbs: bool = False
    """whether the slope is up beyond doubt"""
    burst: float = 0.0
    """requests a second on top of this rate that may come within a start-up time, though none were observed yet"""
    unseen: float = 0.0
    """seconds for which such a burst is still expected, because the traffic is known for so short a time"""

    def at(self, lead: float) -> float:
        """The rate after so many seconds, without margin."""
        return float(self.along(np.array([lead]))[0])

    def along(self, leads: Array) -> Array:
        """The rates at lead times, without margin."""
        if self.way == "wave" and self.wave is not None:
            # What it says of now may be off; that wears off with time.
            rates = self.wave.at(self.clock + np.append(0.0, leads))
            return np.asarray(np.maximum(0.0, rates[1:] + (self.now - rates[0]) * np.exp(-leads / TREND_LASTS)))
        if self.way == "trend":
            return np.maximum(0.0, self.now + self.slope * TREND_LASTS * (1 - np.exp(-leads / TREND_LASTS)))
        if self.way in BURSTS:
            # A burst is not what is usual, but it is there now, and ends as bursts do.
            return self.usual + (self.now - self.usual) * np.exp(-leads / BURSTS[self.way])
        return np.full(leads.shape, self.now)

    @property
    def climbs_unjudged(self) -> bool:
        """Whether the load climbs beyond doubt, and no forecast could be held against what came yet."""
        return not self.errors and self.climbs

    @cached_property
    def _off(self) -> Array:
        """What forecasts at the horizon were off by, at `PLACES`."""
        return np.quantile(np.array(self.errors), PLACES) if self.errors else np.zeros(len(PLACES))

    def off_by(self) -> tuple[float, float]:
        """What forecasts at the horizon were off by, but for the highest and lowest tenth."""
        low, high = self._off[ROWS:]
        return float(low), float(high)

    def spread(self, leads: Array) -> Array:
        """Rates that may come at lead times, `ROWS` of them, each as likely: the forecast, off as it was of late."""
        return self._with_burst(self._spread(leads), leads)

    def highest(self, lead: float) -> float:
        """The highest of the rates that may come after so many seconds."""
        return float(self.spread(np.array([lead])).max())

    def _with_burst(self, rates: Array, leads: Array) -> Array:
        """The highest of the rates may be a burst that was not observed yet."""
        if self.burst <= 0:
            return rates
        count = max(1, round(len(rates) * BURST_ROWS))
        highest = np.argsort(rates[:, -1])[-count:]
        burst = self.now + self.burst * np.minimum(1.0, leads / self.horizon)
        rates[highest] = np.maximum(rates[highest], burst)
        return rates

    def _spread(self, leads: Array) -> Array:
        expected = self.along(leads)
        if not self.errors:
            # How forecasts do is not known yet: it may stay as it is, or go on as it does, just as well.
            straight = np.maximum(0.0, self.now + self.slope * leads)
            unjudged = [expected, np.full(len(leads), self.now), straight]
            if self.climbs_unjudged:
                # Or as before by the same share of itself: loads that begin to climb often do so ever faster.
                grown = np.exp(np.minimum(self.slope / max(self.now, 1e-9) * leads, log(CLIMB_MOST)))
                unjudged.append(self.now * grown)
            return np.array(unjudged)
        rates = expected + self._off[:ROWS, None] * np.sqrt(np.minimum(1.0, leads / self.horizon))
        return np.asarray(np.clip(rates, np.minimum(expected, self.trough), np.maximum(expected, self.peak)))


class Forecaster:
    """Predicts the rate of one graph."""

    def __init__(self) -> None:
        self._records = {way: Record() for way in WAYS}
        self._way = "trend"
        self._wave: Wave | None = None
        self._searched = -np.inf
        self._short = SHORT[0]
        self._growth = UNSEEN_GROWTH
        self._losses: dict[str, float] = {}

    def losses(self) -> dict[str, float]:
        """How the ways have done up to the last forecast, requests a second off."""
        return self._losses

    def forecast(self, demand: Demand, now: float, horizon: float) -> Forecast:
        """What to expect; `horizon` is the time that a new replica needs. Call once a sample."""
        self._short = SHORT[0] + (SHORT[1] - SHORT[0]) * min(1.0, horizon / LONG)
        start, slope, climbs = _trend(demand, now)
        if now - self._searched >= WAVE_EVERY:
            self._searched = now
            self._wave = find_wave(*demand.newest(LIMIT))
        for record in self._records.values():
            while record.waiting and record.waiting[0][0] <= now:
                _, predicted, then = record.waiting.popleft()
                record.errors.append(then, start - predicted)
        ways = [way for way in self._records if way != "wave" or self._wave is not None]
        usual, trough, peak = _usual(demand, now)
        made = {way: Forecast(way, start, slope, horizon, self._wave, now, usual) for way in ways}
        for way, forecast in made.items():
            self._records[way].waiting.append((now + horizon, forecast.at(horizon), start))
        known = ((way, record.loss(self._short)) for way, record in self._records.items())
        self._losses = {way: loss for way, loss in known if loss is not None}
        self._choose(ways)
        if self._way == "wave" and self._wave is not None:
            # It is fitted again each minute: what earlier ones were off by says nothing of this one.
            errors = tuple(self._wave.off * each for each in BELL)
        else:
            errors = self._records[self._way].alike(start)
        watched = now - (demand.samples[0].at - demand.samples[0].seconds)
        unseen = max(0.0, min(UNSEEN * horizon, UNSEEN_MOST) - watched)
        if demand.grew(1 + UNSEEN_GROWTH, horizon):
            self._growth = NEXT_GROWTH
        first = _unseen(max(start, trough), usual, self._growth, horizon) if unseen else 0.0
        burst = max(_jump(demand, peak), first) + max(0.0, trough - start)
        wave = self._wave
        return Forecast(self._way, start, slope, horizon, wave, now, usual, trough, peak, errors, climbs, burst, unseen)

    def _choose(self, ways: list[str]) -> None:
        if self._way not in ways:
            self._way = "trend"
        losses = {way: loss for way, loss in self._losses.items() if way in ways}
        # That bursts end has to be observed first.
        for way in BURSTS:
            if way in losses:
                losses[way] /= BURSTS_END
        own = losses.get(self._way)
        best = min(losses, key=lambda way: losses[way], default=self._way)
        if best != self._way and (own is None or losses[best] < BETTER * own):
            self._way = best


def _unseen(rate: float, usual: float, growth: float, horizon: float) -> float:
    """What a burst may add that was not observed yet, `growth` times the rate: more where starts take long.

    What is usual grows by that, so a rate that is as high already is the burst.
    """
    grows = min(growth * rate, max(0.0, (1 + growth) * usual - rate))
    return grows * min(1.0, horizon / LONG_START)


def _jump(demand: Demand, peak: float) -> float:
    """What a burst may add that has just begun: as much again, but no more than leads to where rates have been."""
    jump, newest = demand.jump(), demand.samples[-1].rate
    return min(jump, peak - newest) if jump and newest < peak else jump


def _usual(demand: Demand, now: float) -> tuple[float, float, float]:
    """Median, 5th and 99th percentile of the last two hours."""
    rates = np.sort(demand.rates_since(now - USUAL_OVER))
    if not rates.size:
        return 0.0, 0.0, 0.0
    places = len(rates) // 2, int(0.05 * len(rates)), int(0.99 * (len(rates) - 1))
    usual, trough, peak = rates[list(places)].tolist()
    return usual, trough, peak


def _trend(demand: Demand, now: float) -> tuple[float, float, bool]:
    """The rate of this moment, its slope (requests a second each second) and whether it climbs beyond doubt.

    There is no slope where chance alone could make it.

    Taken from the longest of some windows that a straight line fits as well as chance lets it.
    """
    recent = demand.recent(now, LENGTHS_OVER)
    for window in TREND_OVER:
        newest = [sample for sample in recent if sample.at > now - window]
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
        rate = max(0.0, float(rates.mean()) + slope * (now - float(times.mean())))
        return rate, slope, slope >= SURE * sqrt(chance / width)
    return steady(recent), 0.0, False
