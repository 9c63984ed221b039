"""Predicts the rate: several methods, of which the one with the smallest past error at this lead time is used.

At each tick, each method predicts the rate at the end of a start-up time. At that time, the prediction is compared with
the observed rate. So no setting says whether traffic is steady, climbs or oscillates, and the margin is derived from
how much forecasts were too low.
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
"""Too low a forecast costs more than too high a one: the pinball loss at this quantile selects the method and sets the
margin.
The first value is for replicas that start at once, the second for those that need `LONG`: a shortage lasts as long as a
start.
"""
LONG = 300.0
MEMORY = 720
"""Newest forecasts by which a method is judged: half an hour of them, so that rare events are not forgotten at once."""
SIMILAR_SHARE = 0.5
"""Share of forecasts that estimate the error of this one: those that were made at the nearest rates."""
ROWS = 8
"""Rates considered for each lead time: enough to distinguish one case in eight."""
QUANTILES = (*((row + 0.5) / ROWS for row in range(ROWS - 1)), 0.99, 0.1, 0.9)
"""Quantiles of errors: one for each row, then the lowest and highest tenth for reports."""
NORMAL_SCORES = (-1.53, -0.89, -0.49, -0.16, 0.16, 0.49, 0.89, 1.53)
"""Eight equally likely standard deviations."""
FEWEST = 6
"""Forecasts that a method must have made before it is judged."""
TREND_OVER = (300.0, 180.0, 90.0)
"""Lengths in seconds of the windows that a trend is fitted to."""
STRAIGHT = 1.6
"""Factor by which the squared distance of samples from a straight line may exceed that of chance."""
TREND_LASTS = 60.0
"""Seconds after which a trend has lost most of its effect: no load climbs without end."""
TREND_DEVIATIONS = 2.0
"""Standard deviations by which a slope must differ from zero."""
CLIMB_DEVIATIONS = 3.0
"""The same, for a climb that may continue exponentially: such an extrapolation of a random slope would cost many
replicas.
"""
WAVE_EVERY = 60.0
"""Seconds between two searches for a wave."""
BURSTS = {"short-bursts": 30.0, "long-bursts": 120.0}
"""Seconds after which a burst has lost most of its effect, if bursts were observed."""
BURSTS_END = 0.8
"""The forecast assumes that bursts end only if this reduces the loss to this factor."""
METHODS = ("level", "trend", "wave", *BURSTS)
USUAL_OVER = 7200.0
UNSEEN, UNSEEN_MOST = 8.0, 600.0
"""Start-up times without a burst, and the maximum in seconds, after which no burst is expected: rarer bursts are not
worth a replica.
"""
UNSEEN_GROWTH = 2.0
"""Growth, in multiples of the rate, of a burst when none was observed yet: the rate triples."""
NEXT_GROWTH = 1.0
"""...and of the next burst after the rate has tripled within a start-up time, or after bursts that were missed: most of
the growth has happened, so the next one doubles the rate. Not after a pause, when no growth has begun.
"""
PAUSE = 20.0
"""Seconds without a request after which a new graph is prepared for the return of its highest rate: two samples, since
one may be chance.
"""
FEWEST_BURSTS = 3
"""Bursts, separated by pauses, from which a burst that exceeds all earlier ones may be followed by a higher one."""
LONG_START = 60.0
"""Start-up seconds from which the full burst is planned for; with shorter start-ups, replicas can follow the burst."""
BURST_ROWS = 1 / 8
"""Share of the considered rates that such a burst replaces."""
CLIMB_MOST = 4.0
"""Factor that limits an exponential climb: two doublings."""
IMPROVEMENT = 0.95
"""A method replaces the current one only if it reduces the loss to this factor."""


@dataclass(slots=True)
class Record:
    """Predictions of a method, and their errors."""

    waiting: deque[tuple[float, float, float]] = field(default_factory=deque)
    """(time, predicted rate, rate at the time of the prediction)"""
    errors: Columns = field(default_factory=lambda: Columns(2, MEMORY))
    """rate at the time of the prediction, observed minus predicted rate"""

    def errors_near(self, rate: float) -> tuple[float, ...]:
        """Errors of forecasts made at similar rates; empty if there are too few."""
        if len(self.errors) < FEWEST:
            return ()
        rates, errors = self.errors.all
        nearest = np.abs(rates - rate).argsort(kind="stable")
        return tuple(errors[nearest[: max(FEWEST, int(SIMILAR_SHARE * len(nearest)))]].tolist())

    def loss(self, short: float) -> float | None:
        """Mean pinball loss, requests a second; None if there are too few forecasts."""
        if len(self.errors) < FEWEST:
            return None
        _, errors = self.errors.all
        return total(np.where(errors > 0, short * errors, (short - 1) * errors)) / len(self.errors)


@dataclass(frozen=True)
class Forecast:
    """The rate by lead time, and the figures that it is based on."""

    way: str
    now: float
    """the current rate"""
    slope: float
    """requests a second, each second"""
    horizon: float
    wave: Wave | None = None
    clock: float = 0.0
    usual: float = 0.0
    """the median of the last two hours"""
    trough: float = 0.0
    peak: float = inf
    """the highest rate of that time, without the highest hundredth"""
    errors: tuple[float, ...] = ()
    """of recent forecasts at the horizon"""
    climbs: bool = False
    """whether the slope is significantly positive"""
    burst: float = 0.0
    """requests a second by which the rate may grow within a start-up time, although no burst was observed yet"""
    unseen: float = 0.0
    """seconds for which such a burst is still expected, because the history of the traffic is so short"""

    def at(self, lead: float) -> float:
        """The rate after `lead` seconds, without margin."""
        return float(self.rates_at(np.array([lead]))[0])

    def rates_at(self, leads: Array) -> Array:
        """The rates at lead times, without margin."""
        if self.way == "wave" and self.wave is not None:
            # The wave may not match the current rate; this difference decays with time.
            rates = self.wave.at(self.clock + np.append(0.0, leads))
            return np.asarray(np.maximum(0.0, rates[1:] + (self.now - rates[0]) * np.exp(-leads / TREND_LASTS)))
        if self.way == "trend":
            return np.maximum(0.0, self.now + self.slope * TREND_LASTS * (1 - np.exp(-leads / TREND_LASTS)))
        if self.way in BURSTS:
            # The burst is not part of the usual rate, but it is present now and decays like a burst.
            return self.usual + (self.now - self.usual) * np.exp(-leads / BURSTS[self.way])
        return np.full(leads.shape, self.now)

    @property
    def climbs_without_errors(self) -> bool:
        """Whether the load climbs significantly, and no forecast could be compared with an observation yet."""
        return not self.errors and self.climbs

    @cached_property
    def _error_quantiles(self) -> Array:
        """Errors of forecasts at the horizon, at `PLACES`."""
        return np.quantile(np.array(self.errors), QUANTILES) if self.errors else np.zeros(len(QUANTILES))

    def error_range(self) -> tuple[float, float]:
        """Errors of forecasts at the horizon, without the highest and lowest tenth."""
        low, high = self._error_quantiles[ROWS:]
        return float(low), float(high)

    def spread(self, leads: Array) -> Array:
        """`ROWS` equally likely rates at each lead time: the forecast plus its recent errors."""
        return self._with_burst(self._spread(leads), leads)

    def highest(self, lead: float) -> float:
        """The highest considered rate after `lead` seconds."""
        return float(self.spread(np.array([lead])).max())

    def _with_burst(self, rates: Array, leads: Array) -> Array:
        """Replaces the highest of the rates with a burst that was not observed yet."""
        if self.burst <= 0:
            return rates
        count = max(1, round(len(rates) * BURST_ROWS))
        highest = np.argsort(rates[:, -1])[-count:]
        burst = self.now + self.burst * np.minimum(1.0, leads / self.horizon)
        rates[highest] = np.maximum(rates[highest], burst)
        return rates

    def _spread(self, leads: Array) -> Array:
        expected = self.rates_at(leads)
        if not self.errors:
            # The errors of forecasts are not known yet: the rate may stay constant or continue its trend, with equal
            # probability.
            straight = np.maximum(0.0, self.now + self.slope * leads)
            unjudged = [expected, np.full(len(leads), self.now), straight]
            if self.climbs_without_errors:
                # Or it continues to grow exponentially: a beginning climb often accelerates.
                grown = np.exp(np.minimum(self.slope / max(self.now, 1e-9) * leads, log(CLIMB_MOST)))
                unjudged.append(self.now * grown)
            return np.array(unjudged)
        rates = expected + self._error_quantiles[:ROWS, None] * np.sqrt(np.minimum(1.0, leads / self.horizon))
        return np.asarray(np.clip(rates, np.minimum(expected, self.trough), np.maximum(expected, self.peak)))


class Forecaster:
    """Predicts the rate of one graph."""

    def __init__(self) -> None:
        self._records = {way: Record() for way in METHODS}
        self._way = "trend"
        self._wave: Wave | None = None
        self._searched = -np.inf
        self._short = SHORT[0]
        self._growth = UNSEEN_GROWTH
        self._losses: dict[str, float] = {}

    def losses(self) -> dict[str, float]:
        """Losses of the methods up to the last forecast, requests a second."""
        return self._losses

    def forecast(self, demand: Demand, now: float, horizon: float, *, missed: bool = False) -> Forecast:
        """The forecast; `horizon` is the start-up time of a new replica. Call it once per sample.

        `missed`: whether the last hour kept less than was promised, so that bursts may exceed all earlier ones.
        """
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
            # The wave is fitted again each minute: the errors of earlier waves do not apply to this one.
            errors = tuple(self._wave.off * each for each in NORMAL_SCORES)
        else:
            errors = self._records[self._way].errors_near(start)
        watched = now - (demand.samples[0].at - demand.samples[0].seconds)
        unseen = max(0.0, min(UNSEEN * horizon, UNSEEN_MOST) - watched)
        if demand.grew(1 + UNSEEN_GROWTH, horizon):
            self._growth = NEXT_GROWTH
        rates = demand.rates_since(now - USUAL_OVER)
        rate, middle, growth = max(start, trough), usual, self._growth
        if unseen and demand.quiet >= PAUSE:
            # The traffic of a new graph pauses: it is expected to return as high as before, or in a burst.
            rate = middle = float(rates.max())
            growth = UNSEEN_GROWTH
        first = _unseen(rate, middle, growth, horizon) if unseen else 0.0
        higher = _next_record(rates) - rate if missed else 0.0
        burst = max(_jump(demand, peak), first, higher) + rate - start
        wave = self._wave
        return Forecast(self._way, start, slope, horizon, wave, now, usual, trough, peak, errors, climbs, burst, unseen)

    def _choose(self, ways: list[str]) -> None:
        if self._way not in ways:
            self._way = "trend"
        losses = {way: loss for way, loss in self._losses.items() if way in ways}
        # Bursts must have been observed before the forecast assumes that they end.
        for way in BURSTS:
            if way in losses:
                losses[way] /= BURSTS_END
        own = losses.get(self._way)
        best = min(losses, key=lambda way: losses[way], default=self._way)
        if best != self._way and (own is None or losses[best] < IMPROVEMENT * own):
            self._way = best


def _unseen(rate: float, usual: float, growth: float, horizon: float) -> float:
    """Requests a second that an unobserved burst may add: `growth` times the rate, scaled up to full for long
    start-ups.

    The usual rate grows by `growth`, so if the rate is already that high, the burst has happened.
    """
    grows = min(growth * rate, max(0.0, (1 + growth) * usual - rate))
    return grows * min(1.0, horizon / LONG_START)


def _next_record(rates: Array) -> float:
    """The rate of a burst that is twice as high as all before; 0 if there are too few bursts, which are separated by
    pauses.
    """
    begins = (rates > 0) & (np.append(0.0, rates[:-1]) <= 0)
    return (1 + NEXT_GROWTH) * float(rates.max()) if np.count_nonzero(begins) >= FEWEST_BURSTS else 0.0


def _jump(demand: Demand, peak: float) -> float:
    """Growth expected from a burst that has just begun: as much again, but not beyond the earlier peak."""
    jump, newest = demand.jump(), demand.samples[-1].rate
    return min(jump, peak - newest) if jump and newest < peak else jump


def _usual(demand: Demand, now: float) -> tuple[float, float, float]:
    """Median, 5th and 99th percentile of the last two hours' rates."""
    rates = np.sort(demand.rates_since(now - USUAL_OVER))
    if not rates.size:
        return 0.0, 0.0, 0.0
    places = len(rates) // 2, int(0.05 * len(rates)), int(0.99 * (len(rates) - 1))
    usual, trough, peak = rates[list(places)].tolist()
    return usual, trough, peak


def _trend(demand: Demand, now: float) -> tuple[float, float, bool]:
    """The current rate, its slope (requests a second, per second) and whether it climbs significantly.

    The slope is 0 if chance alone could explain it. The trend is fitted to the longest window in which a straight line
    fits as well as chance permits.
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
        # Variance of one sample of random arrivals.
        chance = max(float(rates.mean()), 1 / newest[0].seconds) / newest[0].seconds
        left = float(((rates - rates.mean() - slope * off) ** 2).sum())
        if left > STRAIGHT * chance * (len(newest) - 2) and window > TREND_OVER[-1]:
            continue
        if abs(slope) < TREND_DEVIATIONS * sqrt(chance / width):
            break
        rate = max(0.0, float(rates.mean()) + slope * (now - float(times.mean())))
        return rate, slope, slope >= CLIMB_DEVIATIONS * sqrt(chance / width)
    return steady(recent), 0.0, False
