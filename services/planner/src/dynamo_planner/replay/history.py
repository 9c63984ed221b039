"""The simulated Prometheus: scrapes the counters of the frontend and of the router.

The frontend counts a request when it arrives, its prompt and its TTFT with the first token, each further token when it
comes, and the tokens of an answer at its end (ResponseMetricCollector in the frontend of Dynamo).
"""

from bisect import bisect_right
from math import floor

from dynamo_planner.core.scraped_traffic import HITS, ScrapedWindow, covered
from dynamo_planner.replay.engine import Job

EVERY, PHASE = 5.0, 2.5
"""Seconds between two scrapes (the default of the chart's `graphPodMonitor`), and the time of the first one: ticks are
half of that time after a scrape, as on average.
"""


class History:
    """Counters by time. `hits`: whether the hit rate of the KV cache is scraped."""

    def __init__(self, *, hits: bool = True) -> None:
        self._has_hits = hits
        self._arrived, self._isl, self._osl = _Counter(), _Counter(), _Counter()
        self._ttft, self._itl, self._hits = _Counter(), _Counter(), _Counter()

    def came(self, now: float) -> None:
        """Record that a request arrived at the frontend."""
        self._arrived.add(now, 1, 0.0)

    def routed(self, job: Job, now: float) -> None:
        """Record that a request was routed to an engine, which may have cached a part of its prompt."""
        self._hits.add(now, 1, job.cached / job.request.isl)

    def first_token(self, job: Job, now: float) -> None:
        """Record that a request has its first token."""
        self._isl.add(now, 1, job.request.isl)
        self._ttft.add(now, 1, job.ttft or 0.0)

    def tokens(self, count: int, each: float, now: float) -> None:
        """Record further tokens, each this many seconds after the one before."""
        self._itl.add(now, count, count * each)

    def ended(self, job: Job, now: float) -> None:
        """Record that a request has its last token."""
        self._osl.add(now, 1, job.request.osl)

    def arrived(self, since: float, until: float) -> int:
        """Requests that arrived after `since`, up to `until`."""
        return self._arrived.increase(since, until)[0]

    def scraped(self, now: float, seconds: float) -> ScrapedWindow:
        """The scrapes of the last seconds, and the increases between them."""
        first = max(0, floor((now - seconds - PHASE) / EVERY) + 1)
        track = [PHASE + EVERY * count for count in range(first, floor((now - PHASE) / EVERY) + 1)]
        requests, means = 0.0, dict[str, float | None]()
        if len(track) > 1:
            begin, end = track[0], track[-1]
            requests = self.arrived(begin, end) * covered([track], now, seconds) / (end - begin)
            counters = {"isl": self._isl, "osl": self._osl, "ttft": self._ttft, "itl": self._itl}
            counters |= {HITS: self._hits} if self._has_hits else {}
            means = {name: counter.mean(begin, end) for name, counter in counters.items()}
        return ScrapedWindow(at=now, seconds=seconds, requests=requests, tracks=[track], means=means)


class _Counter:
    """A counter, or the count and the sum of a histogram: any two times need two look-ups."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._totals: list[tuple[int, float]] = [(0, 0.0)]

    def add(self, now: float, count: int, value: float) -> None:
        counted, total = self._totals[-1]
        self._times.append(now)
        self._totals.append((counted + count, total + value))

    def increase(self, since: float, until: float) -> tuple[int, float]:
        """Of the count and of the sum."""
        (before, low), (after, high) = (self._totals[bisect_right(self._times, at)] for at in (since, until))
        return after - before, high - low

    def mean(self, since: float, until: float) -> float | None:
        """Of the values in between; None without any, as NaN in Prometheus."""
        count, total = self.increase(since, until)
        return total / count if count else None
