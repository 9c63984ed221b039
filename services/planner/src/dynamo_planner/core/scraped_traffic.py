"""The traffic of a window, from scraped counters: the rules for the service and for replays. Pure.

No requests is a number: the counter exists and did not grow. Outages, stale values and values that are not numbers are
reported by name instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from dynamo_planner.core.observation import Missing, Traffic

LENGTHS = ("isl", "osl")
TIMES = ("ttft", "itl")
HITS = "hits"
"""Names of means: tokens, seconds, and the share of cached prompt tokens."""
STALE_AFTER = 90.0
"""Seconds since the newest scrape of any series; if scraping suits planning, scrapes are at most a minute apart."""
LEAST_COVERED = 0.5
"""Share of the window that must have been scraped; less does not represent the rest."""
LEAST_WINDOW = 15.0
"""Seconds: the shortest time between samples of a policy, 10 s, and one scrape of the chart's PodMonitors. So each growth
of a counter is in one window: shorter windows miss the growth between their scrapes, and longer ones show a burst late,
with a part of the quiet time before it. Sources that are scraped less often get longer windows.
"""
EXTRAPOLATED_WITHIN = 1.1
"""If a sample is within this many mean sample distances of the window's end, the end counts as reached; otherwise, half
a distance is added.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapedWindow:
    """The scrapes of one window."""

    at: float
    """its end, in seconds of the clock of the scrapes"""
    seconds: float
    requests: float
    """the increase of the counter, as Prometheus extrapolates it"""
    tracks: Sequence[Sequence[float]]
    """times of the scrapes of each series, oldest first"""
    means: Mapping[str, float | None]
    """of LENGTHS, TIMES and HITS; None if unknown"""
    ended: bool = False
    """whether the counter counts requests when they end"""

    @property
    def age(self) -> float:
        """Seconds since the newest scrape of any series."""
        return min((self.at - track[-1] for track in self.tracks if track), default=self.seconds)

    @property
    def covered(self) -> float:
        """Seconds of the window that were scraped."""
        return covered(self.tracks, self.at, self.seconds)


class ScrapedTraffic:
    """Converts windows of one graph to traffic. Keeps the lengths of the last requests, for windows without requests."""

    def __init__(self, *, least_window: float = LEAST_WINDOW, stale_after: float = STALE_AFTER) -> None:
        self._least_window, self._stale_after = least_window, stale_after
        self._lengths: dict[str, float] = {}

    @property
    def unknown_lengths(self) -> list[str]:
        """The lengths that no window had yet."""
        return [name for name in LENGTHS if name not in self._lengths]

    def window(self, seconds: float) -> float:
        """The window that is observed instead of the requested one: not too short for scrapes, and in whole seconds,
        like the range of a query.
        """
        return max(float(round(seconds)), self._least_window)

    def of(self, window: ScrapedWindow) -> Traffic | Missing:
        """The traffic, or why it is unknown."""
        if not isfinite(window.requests):
            return Missing.NOT_A_NUMBER
        if window.age > self._stale_after:
            return Missing.STALE
        known_for = window.covered
        if known_for < LEAST_COVERED * window.seconds:
            return Missing.TOO_YOUNG
        means = window.means
        self._lengths |= {name: mean for name in LENGTHS if (mean := means.get(name)) is not None}
        if window.requests > 0 and self.unknown_lengths:
            return Missing.NO_SERIES
        return Traffic(
            duration=window.seconds,
            requests=window.requests * window.seconds / known_for,
            isl=self._lengths.get("isl", 0.0),
            osl=self._lengths.get("osl", 0.0),
            kv_hit_rate=means.get(HITS),
            ttft=milliseconds(means.get("ttft")),
            itl=milliseconds(means.get("itl")),
            ended=window.ended,
        )


def milliseconds(seconds: float | None) -> float | None:
    """Converts seconds, which may be unknown."""
    return None if seconds is None else seconds * 1000


def covered(tracks: Iterable[Sequence[float]], at: float, window: float) -> float:
    """Seconds of the window that ends at `at` which the series cover together; 0 if no series was scraped twice.

    `increase` knows only samples within the window, and extrapolates them to its ends by at most one scrape. If
    Prometheus was down or restarted, `increase` reports a part of the window as the whole: an apparent fall in demand
    that never happened. The part follows from the times of the samples, by Prometheus's own rule (`extrapolatedRate` in
    its source). It reaches from the first series' begin to the last series' end: a frontend that replaces another
    continues its coverage.
    """
    spans = [_span(times, at, window) for times in tracks if len(times) > 1]
    if not spans:
        return 0.0
    return min(window, max(end for _, end in spans) - min(begin for begin, _ in spans))


def _span(times: Sequence[float], at: float, window: float) -> tuple[float, float]:
    first, last = times[0], times[-1]
    mean = (last - first) / (len(times) - 1)

    def reach(distance: float) -> float:
        return distance if distance < EXTRAPOLATED_WITHIN * mean else mean / 2

    return first - reach(max(0.0, first - (at - window))), last + reach(max(0.0, at - last))
