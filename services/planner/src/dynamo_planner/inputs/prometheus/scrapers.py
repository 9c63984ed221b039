"""Removes duplicate series of a target that several jobs scrape, such as the chart's PodMonitor and one of the user."""

from collections import defaultdict
from collections.abc import Iterable
from math import isfinite
from typing import TypeVar

from dynamo_planner.inputs.prometheus.client import SeriesValue, SeriesValues, Track

Labelled = TypeVar("Labelled", SeriesValue, Track, SeriesValues)

#: Labels that identify the scraper of a target.
_JOB = ("job", "prometheus", "prometheus_replica")
#: Plus the labels that only the chart's scrape config adds: all other labels belong to the target and its metric.
SCRAPER = (*_JOB, "dynamo_component_type", "dynamo_graph_deployment")
_INSTANCE = "instance"


def once(series: Iterable[Labelled]) -> list[Labelled]:
    """The series of each target from one job: the one with the most data. Series without `instance` are results, and
    stay.

    Jobs add their own labels to a target's series, so equal series cannot be matched; but each job has all of them.
    """
    targets: dict[object, dict[object, list[Labelled]]] = defaultdict(lambda: defaultdict(list))
    for each in series:
        labels = each.labels
        target = labels.get(_INSTANCE) or object()
        targets[target][tuple(labels.get(name) for name in _JOB)].append(each)
    return [each for jobs in targets.values() for each in max(jobs.values(), key=_amount_of_data)]


def _amount_of_data(series: Iterable[Labelled]) -> float:
    """A measure that grows with the time for which a job has scraped the target."""
    return sum(map(_amount_of_data_of_one, series))


def _amount_of_data_of_one(series: SeriesValue | Track | SeriesValues) -> float:
    if isinstance(series, SeriesValue):
        return series.value if isfinite(series.value) else 0.0
    return len(series.times if isinstance(series, Track) else series.points)
