"""Traffic from before planning began, from what Prometheus knows of requests and their lengths over time."""

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean

from dynamo_planner.core.observing import PastTraffic, Traffic
from dynamo_planner.inputs.prometheus.client import SeriesValues
from dynamo_planner.inputs.prometheus.queries import LENGTHS

STEP = 60.0
"""Seconds of one sample of the past: where a graph is planned, two scrapes lie in each."""


def past_traffic(
    counts: Sequence[SeriesValues], means: Mapping[str, Sequence[SeriesValues]], until: float, step: float = STEP
) -> tuple[PastTraffic, ...]:
    """Samples of `step` seconds, oldest first, from the requests of each and the means of their lengths and times (seconds).

    `until` is the end of the past, seconds since 1970. Where no request came, lengths are those of the requests before (of the
    first ones, at the beginning); empty where no length is known at all. Samples of which nothing is known are left out.
    """
    by_name = {name: _by_time(series) for name, series in means.items()}
    if not all(by_name[name] for name in LENGTHS):
        return ()
    known = {name: fmean(next(iter(by_name[name].values()))) for name in LENGTHS}
    samples = []
    for at, values in _by_time(counts).items():
        now = {name: fmean(by_time[at]) for name, by_time in by_name.items() if at in by_time}
        known |= {name: now[name] for name in LENGTHS if name in now}
        traffic = Traffic(
            duration=step,
            requests=sum(values),
            isl=known["isl"],
            osl=known["osl"],
            ttft=milliseconds(now.get("ttft")),
            itl=milliseconds(now.get("itl")),
        )
        samples.append(PastTraffic(ago=max(0.0, until - at), traffic=traffic))
    return tuple(samples)


def milliseconds(seconds: float | None) -> float | None:
    """Of a time that may not be known."""
    return None if seconds is None else seconds * 1000


def _by_time(series: Sequence[SeriesValues]) -> dict[float, list[float]]:
    """Values of all series at each time, oldest first; a series that saw nothing is NaN there and says nothing."""
    values: dict[float, list[float]] = {}
    for each in series:
        for at, value in each.points:
            if isfinite(value):
                values.setdefault(at, []).append(value)
    return dict(sorted(values.items()))
