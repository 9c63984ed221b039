"""How much of a window was scraped, and so what its `increase` is the increase of. Pure.

`increase` knows only samples within the window, and extrapolates them to its ends by at most one scrape. Of a Prometheus that
was away, or restarted, it therefore reports a part of the window as if it were all of it: falling demand that never
happened. The part follows from the times of the samples, by Prometheus's own rule (`extrapolatedRate` in its source).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

EXTRAPOLATED_WITHIN = 1.1
"""Mean distances of samples; an end of the window that is nearer to a sample is reached, else half a distance is added."""


def covered(tracks: Iterable[Sequence[float]], at: float, window: float) -> float:
    """Seconds of the window that ends at `at` which the longest of the series covers; 0 where no series was scraped twice."""
    return max((_of_one(times, at, window) for times in tracks), default=0.0)


def _of_one(times: Sequence[float], at: float, window: float) -> float:
    if len(times) < 2:
        return 0.0
    first, last = times[0], times[-1]
    mean = (last - first) / (len(times) - 1)
    ends = (max(0.0, first - (at - window)), max(0.0, at - last))
    return min(window, last - first + sum(end if end < EXTRAPOLATED_WITHIN * mean else mean / 2 for end in ends))
