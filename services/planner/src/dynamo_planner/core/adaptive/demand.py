"""The observed traffic: the rate by time, and the recent mean lengths of requests."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import exp, isfinite, sqrt

import numpy as np

from dynamo_planner.core.adaptive.columns import Array, Columns
from dynamo_planner.core.adaptive.sizers import Load
from dynamo_planner.core.observation import Traffic

KEPT = 1440
"""Samples that are kept: four hours of ten seconds."""
LENGTHS_OVER = 300.0
"""Seconds over which lengths are averaged, weighted by requests: the mix of requests changes more slowly than the rate.
"""
PAUSES_OVER = 7200.0
"""Seconds for which a pause that ended with new requests is remembered."""
MAX_DEVIATIONS = 2.5
"""Standard deviations (of random arrivals) by which samples of one steady rate may differ."""


@dataclass(frozen=True, slots=True)
class RateSample:
    """Requests a second in the `seconds` before `at`."""

    at: float
    rate: float
    seconds: float


class Demand:
    """Samples in order of time, and mean lengths; without figures before the first request."""

    def __init__(self) -> None:
        self.samples: deque[RateSample] = deque(maxlen=KEPT)
        self._columns = Columns(3, KEPT)
        """the same samples: time, rate, seconds"""
        self.isl = self.osl = 0.0
        self.hits: float | None = None
        self._quiet = 0.0
        self._weight = 0.0
        """weight, in requests, of the mean lengths"""
        self._pauses: deque[tuple[float, float]] = deque()
        """(when the pause ended, its seconds)"""

    @property
    def known(self) -> bool:
        """Whether any request arrived since planning began."""
        return self.isl > 0

    @property
    def quiet(self) -> float:
        """Seconds without any request up to the last sample."""
        return self._quiet

    def longest_pause(self, now: float) -> float:
        """Seconds of the longest recent pause that ended with new requests; 0 if there was none."""
        while self._pauses and self._pauses[0][0] <= now - PAUSES_OVER:
            self._pauses.popleft()
        return max((seconds for _, seconds in self._pauses), default=0.0)

    def observe(self, now: float, traffic: Traffic) -> bool:
        """Add a sample. Returns False and ignores the sample if its numbers are invalid."""
        numbers = (traffic.duration, traffic.requests, traffic.isl, traffic.osl)
        if not all(isfinite(n) and n >= 0 for n in numbers) or traffic.duration <= 0:
            return False
        if traffic.requests > 0 and self._quiet > 0 and self.known:
            self._pauses.append((now, self._quiet))
        if traffic.requests > 0 and traffic.isl > 0:
            # All requests of a sample have equal weight, and older samples have less: the first sample contains only
            # short requests that have already ended, and soon has little weight.
            self._weight = self._weight * exp(-traffic.duration / LENGTHS_OVER) + traffic.requests
            share = traffic.requests / self._weight
            self.isl += share * (traffic.isl - self.isl)
            if traffic.osl > 0:
                # In the first samples, no request may have ended yet.
                self.osl += (share if self.osl else 1.0) * (traffic.osl - self.osl)
            if traffic.kv_hit_rate is not None and isfinite(traffic.kv_hit_rate):
                self.hits = (
                    traffic.kv_hit_rate if self.hits is None else self.hits + share * (traffic.kv_hit_rate - self.hits)
                )
        since = self.samples[-1].at if self.samples else now - traffic.duration
        # Windows overlap if they are longer than the ticks. The quiet time is the time since the last request.
        if traffic.requests > 0:
            self._quiet = 0.0
        else:
            self._quiet = max(self._quiet + min(now - since, traffic.duration), traffic.duration)
        sample = RateSample(now, traffic.requests / traffic.duration, traffic.duration)
        self.samples.append(sample)
        self._columns.append(sample.at, sample.rate, sample.seconds)
        return True

    def load(self, rate: float) -> Load:
        """The current mix of requests, at another rate."""
        return Load(rate, self.isl, max(self.osl, 1.0), self.hits)

    def rates_since(self, since: float) -> Array:
        """Rates of the samples after a time, oldest first."""
        at = self._columns.all[0]
        return self._columns.all[1, int(np.searchsorted(at, since, side="right")) :]

    def newest(self, most: int) -> tuple[Array, Array]:
        """Midpoints in time and rates of the newest samples, at most `most`, oldest first."""
        at, rates, seconds = self._columns.all[:, -most:]
        return at - seconds / 2, rates

    def recent(self, now: float, seconds: float) -> list[RateSample]:
        """Samples of the last seconds, back to the last jump of the rate."""
        run: list[RateSample] = []
        for sample in reversed(self.samples):
            if sample.at <= now - seconds or (run and _jumped(run[-1], sample)):
                break
            run.append(sample)
        return run[::-1]

    def jump(self) -> float:
        """Requests a second by which the newest sample exceeds the one before, if that is not chance.

        The burst began somewhere within that sample, so the rate may grow by as much again; the next sample covers it
        fully.
        """
        if len(self.samples) < 3:
            return 0.0
        earlier, before, newest = self.samples[-3], self.samples[-2], self.samples[-1]
        if not _jumped(newest, before) or _jumped(before, earlier):
            return 0.0
        return max(0.0, newest.rate - before.rate)

    def grew(self, times: float, within: float) -> bool:
        """Whether the newest rate is at least `times` a recent rate within the last seconds, and that is not chance."""
        newest = self.samples[-1]
        late = takewhile(lambda sample: sample.at >= newest.at - within, reversed(self.samples))
        return any(newest.rate >= times * sample.rate > 0 and _jumped(newest, sample) for sample in late)


def steady(recent: Sequence[RateSample]) -> float:
    """The rate of the newest samples that are consistent with one rate: the longest such run, which has the least
    noise.
    """
    total = weight = 0.0
    for taken, sample in enumerate(reversed(recent)):
        if taken >= 2:
            mean = total / weight
            apart = sqrt(max(mean, 1 / sample.seconds) * (1 / sample.seconds + 1 / weight))
            if abs(sample.rate - mean) > MAX_DEVIATIONS * apart:
                break
        total += sample.rate * sample.seconds
        weight += sample.seconds
    return total / weight if weight else 0.0


def _jumped(after: RateSample, before: RateSample) -> bool:
    """Whether two samples alone prove that the rate changed."""
    chance = sqrt(max(after.rate, before.rate, 1 / after.seconds) / after.seconds)
    return abs(after.rate - before.rate) > 2 * MAX_DEVIATIONS * chance
