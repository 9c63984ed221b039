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
from dynamo_planner.core.scraped_traffic import (
    HITS,
    LEAST_WINDOW,
    LENGTHS,
    STALE_AFTER,
    TIMES,
    ScrapedTraffic,
    ScrapedWindow,
    milliseconds,
)
from dynamo_planner.inputs.outcome import InputUnavailable
from dynamo_planner.inputs.prometheus.client import (
    PrometheusClient,
    PrometheusError,
    SeriesValue,
    SeriesValues,
)
from dynamo_planner.inputs.prometheus.queries import MODEL, NAMESPACE, Queries
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


def _by_time(series: Sequence[SeriesValues]) -> dict[float, list[float]]:
    """Values of all series at each time, oldest first; a series without observations is NaN and is ignored."""
    values: dict[float, list[float]] = {}
    for each in series:
        for at, value in each.points:
            if isfinite(value):
                values.setdefault(at, []).append(value)
    return dict(sorted(values.items()))


BYTES_OF_SERIES = 100
"""Bytes of a series in an answer, approximately."""
BYTES_OF_POINT = 30
"""Bytes of one point of a series, approximately. Thousands of series take a second."""

log = structlog.get_logger("dynamo.planner.inputs")


class TrafficReader:
    """Reads the traffic of one graph."""

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
        self._step = past_step
        self._disaggregated = disaggregated
        self._scraped = ScrapedTraffic(least_window=least_window, stale_after=stale_after)

    async def read(self, window: float) -> Traffic | InputUnavailable:
        """The traffic of the last `window` seconds, or why it is unknown. A window that is too short for the scrape
        interval is widened; `Traffic.duration` is the resulting length.
        """
        window = self._scraped.window(window)
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
        tracks = self._of_model(await self._client.scrapes(queries.scraped(counter), at=at))
        window = ScrapedWindow(
            at=at,
            seconds=queries.window,
            requests=sum(each.value for each in counts),
            tracks=[each.times for each in tracks],
            means={signal: _mean(reported.get(signal, ())) for signal in (*LENGTHS, *TIMES, HITS)},
            ended=queries.counts_ended(counter),
        )
        traffic = self._scraped.of(window)
        if not isinstance(traffic, Missing):
            return traffic
        return self._unknown(traffic, queries, counter, window, reported)

    def _unknown(
        self,
        why: Missing,
        queries: Queries,
        counter: str,
        window: ScrapedWindow,
        reported: Mapping[str, Sequence[SeriesValue]],
    ) -> InputUnavailable:
        """Why the traffic of a scraped counter is unknown, for users."""
        match why:
            case Missing.STALE:
                message = (
                    f"{counter} of {queries.label_namespace} was last scraped {window.age:.0f} s ago; is the pod of its "
                    f"{queries.source.value} up, and a target of {self._client.url}?"
                )
            case Missing.TOO_YOUNG:
                message = (
                    f"{counter} of {queries.label_namespace} has data for only {window.covered:.0f} s of "
                    f"{window.seconds:g} s"
                )
            case Missing.NO_SERIES:
                lacking = self._scraped.unknown_lengths
                if any(reported[signal] for signal in lacking):
                    why = Missing.NOT_A_NUMBER
                message = (
                    f"{window.requests:g} requests arrived, but {' and '.join(lacking)} of all of them is still unknown"
                )
            case _:
                message = f"{counter} grew by {window.requests} within {window.seconds:g} s"
        return InputUnavailable(why=why, message=message)

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
            asked[HITS] = hits
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
