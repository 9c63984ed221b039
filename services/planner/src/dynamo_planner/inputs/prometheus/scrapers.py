"""Series of a target that several jobs scrape, as a PodMonitor of the chart and one of the user's own: they count once."""

from collections.abc import Iterable
from typing import TypeVar

from dynamo_planner.inputs.prometheus.client import SeriesValue, SeriesValues, Track

Labelled = TypeVar("Labelled", SeriesValue, Track, SeriesValues)

#: Labels that say who scraped a target, and those that only some scrape configs add: the rest is the target's and its metric's.
SCRAPER = ("job", "prometheus", "prometheus_replica", "dynamo_component_type", "dynamo_graph_deployment")
_INSTANCE = "instance"


def once(series: Iterable[Labelled]) -> list[Labelled]:
    """One series of each target and metric: the one that says most. Those without `instance` are results, and stay."""
    known: dict[object, Labelled] = {}
    for each in series:
        labels = each.labels
        own = frozenset(item for item in labels.items() if item[0] not in SCRAPER)
        key: object = own if _INSTANCE in labels else object()
        if key not in known or _says(each) > _says(known[key]):
            known[key] = each
    return list(known.values())


def _says(series: SeriesValue | Track | SeriesValues) -> float:
    """What grows with the time that a job has scraped the target for."""
    if isinstance(series, SeriesValue):
        return series.value if series.value == series.value else float("-inf")
    return len(series.times if isinstance(series, Track) else series.points)
