"""Series of a target that several jobs scrape, as a PodMonitor of the chart and one of the user's own: they count once."""

from collections import defaultdict
from collections.abc import Iterable
from math import isfinite
from typing import TypeVar

from dynamo_planner.inputs.prometheus.client import SeriesValue, SeriesValues, Track

Labelled = TypeVar("Labelled", SeriesValue, Track, SeriesValues)

#: Labels that say who scraped a target.
_JOB = ("job", "prometheus", "prometheus_replica")
#: And those that only the chart's scrape config adds: the rest is the target's and its metric's.
SCRAPER = (*_JOB, "dynamo_component_type", "dynamo_graph_deployment")
_INSTANCE = "instance"


def once(series: Iterable[Labelled]) -> list[Labelled]:
    """The series of each target from one job: the one that says most. Those without `instance` are results, and stay.

    Jobs give a target's series labels of their own, so that what is the same series is not known; each job has all of them.
    """
    targets: dict[object, dict[object, list[Labelled]]] = defaultdict(lambda: defaultdict(list))
    for each in series:
        labels = each.labels
        target = labels.get(_INSTANCE) or object()
        targets[target][tuple(labels.get(name) for name in _JOB)].append(each)
    return [each for jobs in targets.values() for each in max(jobs.values(), key=_say)]


def _say(series: Iterable[Labelled]) -> float:
    """What grows with the time that a job has scraped the target for."""
    return sum(map(_says, series))


def _says(series: SeriesValue | Track | SeriesValues) -> float:
    if isinstance(series, SeriesValue):
        return series.value if isfinite(series.value) else 0.0
    return len(series.times if isinstance(series, Track) else series.points)
