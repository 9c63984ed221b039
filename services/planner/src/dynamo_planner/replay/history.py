"""The data of a simulated Prometheus: requests that arrived and ended, by time window."""

from bisect import bisect_right
from collections.abc import Callable

from dynamo_planner.core.observation import Traffic
from dynamo_planner.replay.engine import Job


class History:
    """Running sums by time, so that any window needs two look-ups."""

    def __init__(self) -> None:
        self._came = _Sums(2)
        self._prompts = _Sums(2)
        self._firsts = _Sums(1)
        self._ended = _Sums(2)
        self._isl = self._osl = 0.0

    def came(self, job: Job, now: float) -> None:
        """Record that a request arrived at the frontend."""
        self._came.add(now, job.request.isl, 1.0)

    def routed(self, job: Job, now: float) -> None:
        """Record that a request was routed to an engine, which may have cached a part of its prompt."""
        self._prompts.add(now, job.cached, job.request.isl)

    def ended(self, job: Job, now: float) -> None:
        """Record that a request has its last token."""
        if job.ttft is not None and job.itl is not None:
            self._firsts.add(now, job.ttft)
            self._ended.add(now, job.request.osl, job.itl)

    def window(self, now: float, seconds: float) -> Traffic:
        """The traffic of the last seconds, as the histograms show it."""
        since = now - seconds
        requests, (isl, _) = self._came.between(since, now)
        ended, (osl, itl) = self._ended.between(since, now)
        _, (ttft,) = self._firsts.between(since, now)
        _, (cached, prompts) = self._prompts.between(since, now)
        self._isl = isl / requests if requests else self._isl
        self._osl = osl / ended if ended else self._osl
        return Traffic(
            duration=seconds,
            requests=float(requests),
            isl=self._isl,
            osl=self._osl,
            kv_hit_rate=cached / prompts if prompts else None,
            ttft=1000 * ttft / ended if ended else None,
            itl=1000 * itl / ended if ended else None,
        )


class _Sums:
    def __init__(self, width: int) -> None:
        self._times: list[float] = []
        self._sums: list[tuple[float, ...]] = [(0.0,) * width]
        self._add: Callable[[tuple[float, ...], tuple[float, ...]], tuple[float, ...]] = (
            (lambda a, b: (a[0] + b[0],)) if width == 1 else (lambda a, b: (a[0] + b[0], a[1] + b[1]))
        )

    def add(self, now: float, *values: float) -> None:
        self._times.append(now)
        self._sums.append(self._add(self._sums[-1], values))

    def between(self, since: float, until: float) -> tuple[int, tuple[float, ...]]:
        first, last = bisect_right(self._times, since), bisect_right(self._times, until)
        return last - first, tuple(b - a for a, b in zip(self._sums[first], self._sums[last], strict=True))
