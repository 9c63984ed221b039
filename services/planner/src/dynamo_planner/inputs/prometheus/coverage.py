"""How much of a window was scraped, and so what its `increase` is the increase of. Pure.

`increase` knows only samples within the window, and extrapolates them to its ends by at most one scrape. Of a Prometheus that
was away, or restarted, it therefore reports a part of the window as if it were all of it: falling demand that never
happened. The part follows from the times of the samples, by Prometheus's own rule (`extrapolatedRate` in its source).
"""

from collections.abc import Iterable, Sequence

EXTRAPOLATED_WITHIN = 1.1
"""Mean distances of samples; an end of the window that is nearer to a sample is reached, else half a distance is added."""


def covered(tracks: Iterable[Sequence[float]], at: float, window: float) -> float:
    """Seconds of the window that ends at `at` which the series cover together; 0 where no series was scraped twice.

    From where the first begins to where the last ends: a frontend that takes another's place goes on where that one ended.
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
