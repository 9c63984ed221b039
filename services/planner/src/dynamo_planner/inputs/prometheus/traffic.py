"""The traffic of one graph: a number if Prometheus knows it, otherwise the reason why it is unknown.

No requests is a number: the counter exists and did not grow. Every other case that resembles it is reported by name: an
outage, a missing scrape, a missing label, stale values, values that are not numbers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from statistics import fmean

import structlog
from dynamo_shared.api.contracts.planner import MetricsSource

from dynamo_planner.core.observation import Missing, PastTraffic, Traffic
from dynamo_planner.inputs.outcome import InputUnavailable
from dynamo_planner.inputs.prometheus.client import (
    PrometheusClient,
    PrometheusError,
    SeriesValue,
    SeriesValues,
    Track,
)
from dynamo_planner.inputs.prometheus.queries import LENGTHS, MODEL, NAMESPACE, TIMES, Queries
from dynamo_planner.inputs.prometheus.scrapers import Labelled, once

STEP = 60.0
"""Seconds of one sample of the past: each contains two scrapes if scraping suits planning."""


def past_traffic(
    counts: Sequence[SeriesValues], means: Mapping[str, Sequence[SeriesValues]], until: float, step: float = STEP
) -> tuple[PastTraffic, ...]:
    """Samples of `step` seconds, oldest first, from the requests and the means of their lengths and times (seconds).

    `until` is the end of the past, seconds since 1970. A sample without requests has the lengths of the requests before
    (at the beginning, of the first ones). Empty if no length is known at all. Samples without known values are omitted.
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
    """Converts seconds, which may be unknown."""
    return None if seconds is None else seconds * 1000


def _by_time(series: Sequence[SeriesValues]) -> dict[float, list[float]]:
    """Values of all series at each time, oldest first; a series without observations is NaN and is ignored."""
    values: dict[float, list[float]] = {}
    for each in series:
        for at, value in each.points:
            if isfinite(value):
                values.setdefault(at, []).append(value)
    return dict(sorted(values.items()))


STALE_AFTER = 90.0
"""Seconds since the newest scrape of any series; if scraping suits planning, scrapes are at most a minute apart."""
BYTES_OF_SERIES = 100
"""Bytes of a series in an answer, approximately."""
BYTES_OF_POINT = 30
"""Bytes of one point of a series, approximately. Thousands of series take a second."""
LEAST_COVERED = 0.5
"""Share of the window that must have been scraped; less does not represent the rest."""
LEAST_WINDOW = 20.0
"""Seconds: four scrapes of the chart's PodMonitors. In less time, most scrape configs have one sample, which is too
few.
"""


log = structlog.get_logger("dynamo.planner.inputs")


class TrafficReader:
    """Reads the traffic of one graph. Keeps the lengths of the last requests, for intervals without requests."""

    def __init__(
        self,
        client: PrometheusClient,
        *,
        source: MetricsSource,
        namespace: str,
        kubernetes_namespace: str,
        model: str | None = None,
        stale_after: float = STALE_AFTER,
        least_window: float = LEAST_WINDOW,
        past_step: float = STEP,
        disaggregated: bool = False,
    ) -> None:
        """`disaggregated`: prefill and decode have separate workers, and their routers each count a request."""
        self._client, self._source, self._namespace = client, source, namespace
        self._kubernetes_namespace = kubernetes_namespace
        self._model = model.casefold() if model else None
        self._model_name = model
        self._stale_after, self._least_window, self._step = stale_after, least_window, past_step
        self._disaggregated = disaggregated
        self._lengths: dict[str, float] = {}

    async def read(self, window: float) -> Traffic | InputUnavailable:
        """The traffic of the last `window` seconds, or why it is unknown. A window that is too short for the scrape
        interval is widened; `Traffic.duration` is the resulting length.
        """
        window = max(window, self._least_window)
        try:
            for queries in self._sources(window):
                reported = await self._all(queries)
                for counter in queries.counters:
                    if reported[counter]:
                        return await self._traffic(queries, counter, reported)
            return await self._nothing(self._queries(self._source, window))
        except PrometheusError as error:
            return InputUnavailable(why=error.why, message=str(error))

    async def past(self, seconds: float, before: float) -> tuple[PastTraffic, ...]:
        """The traffic of the `seconds` before the last `before` seconds, in steps of a minute, oldest first.

        Unknown steps are omitted. Empty if Prometheus cannot be queried: then planning begins without history.
        """
        try:
            for queries in self._sources(self._step):
                for counter in queries.counters:
                    if samples := self._of_model(await self._client.query(queries.of(counter))):
                        return await self._past(queries, counter, samples[0].at - before, seconds)
        except PrometheusError as error:
            log.info("planning starts without past traffic", graph=self._namespace, error=str(error))
        return ()

    def _queries(self, source: MetricsSource, window: float) -> Queries:
        return Queries(
            source,
            self._namespace,
            self._kubernetes_namespace,
            window,
            by_model=self._model is not None,
            disaggregated=self._disaggregated,
        )

    def _sources(self, window: float) -> Iterator[Queries]:
        """The queries, the better source first. A frontend counts once, and under one name, what its two routers count
        twice.
        """
        twice = self._disaggregated and self._source is MetricsSource.ROUTER
        for source in (MetricsSource.FRONTEND, self._source) if twice else (self._source,):
            yield self._queries(source, window)

    async def _past(self, queries: Queries, counter: str, until: float, seconds: float) -> tuple[PastTraffic, ...]:
        async def over_time(promql: str) -> list[SeriesValues]:
            series = await self._client.query_range(promql, since=until - seconds, until=until, step=self._step)
            return self._of_model(series)

        counts = await over_time(queries.requests(counter))
        means = {signal: await over_time(queries.mean(signal)) for signal in (*LENGTHS, *TIMES)}
        points = sum(len(each.points) for signal in (counts, *means.values()) for each in signal)
        return await self._client.offload(
            points * BYTES_OF_POINT, lambda: past_traffic(counts, means, until, self._step)
        )

    async def _traffic(
        self, queries: Queries, counter: str, reported: Mapping[str, Sequence[SeriesValue]]
    ) -> Traffic | InputUnavailable:
        counts = reported[counter]
        at = counts[0].at
        requests = sum(each.value for each in counts)
        if not isfinite(requests):
            return InputUnavailable(
                why=Missing.NOT_A_NUMBER, message=f"{counter} grew by {requests} within {queries.window:g} s"
            )
        tracks = self._of_model(await self._client.scrapes(queries.scraped(counter), at=at))
        if trouble := self._unreliable(queries, counter, tracks, at):
            return trouble
        means = {signal: _mean(reported[signal]) for signal in (*LENGTHS, *TIMES)}
        for signal in LENGTHS:
            if (mean := means[signal]) is not None:
                self._lengths[signal] = mean
        lacking = [signal for signal in LENGTHS if signal not in self._lengths]
        if requests > 0 and lacking:
            return InputUnavailable(
                why=Missing.NOT_A_NUMBER if any(reported[signal] for signal in lacking) else Missing.NO_SERIES,
                message=f"{requests:g} requests arrived, but {' and '.join(lacking)} of all of them is still unknown",
            )
        known_for = covered((each.times for each in tracks), at, queries.window)
        return Traffic(
            duration=queries.window,
            requests=requests * queries.window / known_for,
            isl=self._lengths.get("isl", 0.0),
            osl=self._lengths.get("osl", 0.0),
            kv_hit_rate=_mean(reported.get("hits", ())),
            ttft=milliseconds(means["ttft"]),
            itl=milliseconds(means["itl"]),
            ended=queries.counts_ended(counter),
        )

    def _unreliable(
        self, queries: Queries, counter: str, tracks: Sequence[Track], at: float
    ) -> InputUnavailable | None:
        age = min((at - each.times[-1] for each in tracks if each.times), default=queries.window)
        if age > self._stale_after:
            return InputUnavailable(
                why=Missing.STALE,
                message=f"{counter} of {queries.label_namespace} was last scraped {age:.0f} s ago; is the pod of its "
                f"{queries.source.value} up, and a target of {self._client.url}?",
            )
        known_for = covered((each.times for each in tracks), at, queries.window)
        if known_for < LEAST_COVERED * queries.window:
            return InputUnavailable(
                why=Missing.TOO_YOUNG,
                message=f"{counter} of {queries.label_namespace} has data for only {known_for:.0f} s of {queries.window:g} s",
            )
        return None

    async def _nothing(self, queries: Queries) -> InputUnavailable:
        """Why no series reports the number of requests."""
        where = f"{self._client.url} has no {queries.counters[0]}"
        samples = [each for name in queries.counters for each in await self._client.query(queries.of(name))]
        if self._of_model(samples):
            return InputUnavailable(
                why=Missing.TOO_YOUNG,
                message=f"{queries.counters[0]} of {queries.label_namespace} was scraped once within {queries.window:g} s, "
                "but two samples are required",
            )
        if samples:
            return InputUnavailable(
                why=Missing.NO_SERIES,
                message=f"{where} of model {self._model_name}; model_name must equal the name that the frontend serves",
            )
        unlabelled = [each for name in queries.counters for each in await self._client.query(queries.unlabelled(name))]
        if any(each.value > 0 for each in unlabelled):
            return InputUnavailable(
                why=Missing.NO_LABEL,
                message=f"{where} with the label {NAMESPACE}; make the scrape config copy it from the pod label "
                "nvidia.com/dynamo-namespace, as the chart's PodMonitors do",
            )
        return InputUnavailable(
            why=Missing.NO_SERIES,
            message=f"{where} of {NAMESPACE} {queries.label_namespace}; no request has arrived yet, "
            "or Prometheus does not scrape the metric",
        )

    async def _all(self, queries: Queries) -> dict[str, list[SeriesValue]]:
        """Requests by counter, and means by signal, in one query, because a replica plans many graphs."""
        asked = {counter: queries.requests(counter) for counter in queries.counters}
        asked |= {signal: queries.mean(signal) for signal in (*LENGTHS, *TIMES)}
        if (hits := self._queries(self._source, queries.window).kv_hit_rate) is not None:
            asked["hits"] = hits
        answers = await self._client.query_all(asked)
        size = sum(map(len, answers.values())) * BYTES_OF_SERIES
        return await self._client.offload(
            size, lambda: {name: self._of_model(answer) for name, answer in answers.items()}
        )

    def _of_model(self, samples: Iterable[Labelled]) -> list[Labelled]:
        # Sums and the router's series have no model; if a series has a model, it must be the planned one.
        return once(
            each
            for each in samples
            if self._model is None or MODEL not in each.labels or each.labels[MODEL].casefold() == self._model
        )


def _mean(samples: Sequence[SeriesValue]) -> float | None:
    """The mean of the results: one series, or one for each spelling of a model's name; NaN is ignored."""
    values = [each.value for each in samples if isfinite(each.value)]
    return sum(values) / len(values) if values else None


EXTRAPOLATED_WITHIN = 1.1
"""If a sample is within this many mean sample distances of the window's end, the end counts as reached; otherwise, half
a distance is added.
"""


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
