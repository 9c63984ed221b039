"""Traffic of a graph from Prometheus, and a reason for each case without traffic."""

import math
from dataclasses import replace

import pytest
from dynamo_planner.core.observation import Missing, PastTraffic, Traffic
from dynamo_planner.inputs import InputUnavailable
from dynamo_planner.inputs.prometheus.client import PrometheusError, SeriesValue, SeriesValues, Track
from dynamo_planner.inputs.prometheus.queries import Queries
from dynamo_planner.inputs.prometheus.traffic import TrafficReader
from dynamo_shared.api.contracts.planner import MetricsSource
from dynamo_shared.api.registry import labels

from tests.building.tables import rows

NOW = 1_000_000.0
STARTED = "dynamo_frontend_requests_started_total"
TOTAL = "dynamo_frontend_requests_total"
ROUTED = "dynamo_component_router_requests_total"
ROUTED_STARTED = "dynamo_component_router_requests_started_total"
OWN = {"dynamo_namespace": "ns-a", "model": "Qwen"}


class Scripted:
    """Answers by the kind of a query; unknown ones get an empty result, like from an empty Prometheus."""

    url = "http://prometheus:9090"

    def __init__(self, answers=None):
        self.answers = answers if answers is not None else {}
        self.asked = []
        self.requests = 0

    async def offload(self, size, work):
        return work()

    async def scrapes(self, selector, *, at):
        assert at == NOW
        self.requests += 1
        return await self.query(selector)

    async def query_range(self, promql, *, since, until, step):
        assert (since, until, step) == (NOW - 130, NOW - 10, 60.0)
        answer = self.answers.get(f"{kind(promql)} over time", [])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def query_all(self, asked):
        self.requests += 1
        return {name: await self.query(promql) for name, promql in asked.items()}

    async def query(self, promql):
        self.asked.append(promql)
        answer = self.answers.get(kind(promql), [])
        if isinstance(answer, Exception):
            raise answer
        return answer


def kind(promql):
    if "increase" not in promql and "count(" not in promql:
        return "scraped" if promql.endswith("s]") else "there"
    for name, words in {
        "unlabelled": ("count(",),
        "isl": ("input_sequence_tokens",),
        "osl": ("output_sequence_tokens",),
        "ttft": ("time_to_first_token",),
        "itl": ("inter_token_latency",),
        "hits": ("kv_hit_rate",),
        "started": (STARTED,),
        "routed": (ROUTED,),
        "routed, started": (ROUTED_STARTED,),
        "total": (TOTAL,),
    }.items():
        if any(word in promql for word in words):
            return name
    raise AssertionError(promql)


def series(*values, **labels):
    return [SeriesValue({**OWN, **labels, "pod": str(index)}, NOW, value) for index, value in enumerate(values)]


def scraped(*tracks):
    return [Track(OWN, tuple(NOW + at for at in track)) for track in tracks]


def healthy(**changes):
    return {
        "started": series(90.0, 30.0),
        "scraped": scraped(range(-178, 1, 15)),
        "isl": series(1000.0, 2000.0),
        "osl": series(100.0, 200.0),
        "ttft": series(0.25, 0.75),
        "itl": series(0.0, 0.0625),
        **changes,
    }


def reader(answers, source=MetricsSource.FRONTEND, model="qwen", **options):
    client = Scripted(answers)
    return TrafficReader(
        client,  # type: ignore[arg-type]
        source=source,
        namespace="ns-a",
        kubernetes_namespace="ns",
        model=model,
        **options,
    ), client


async def read(answers, **options):
    return await reader(answers, **options)[0].read(180.0)


async def traffic_of(answers, **options):
    outcome = await read(answers, **options)
    assert isinstance(outcome, Traffic), outcome
    return outcome


def why(outcome):
    assert isinstance(outcome, InputUnavailable)
    return outcome.why


async def test_counts_are_summed_and_lengths_of_a_model_are_averaged():
    assert await read(healthy()) == Traffic(
        duration=180.0, requests=120.0, isl=1500.0, osl=150.0, ttft=500.0, itl=31.25
    )


@pytest.mark.parametrize("counter", ["started", "total"])
async def test_a_sample_needs_two_requests(counter):
    answers = healthy()
    answers[counter] = answers.pop("started")
    traffic_reader, client = reader(answers)
    assert isinstance(await traffic_reader.read(180.0), Traffic)
    assert client.requests == 2


@pytest.mark.parametrize("extra", [{"dynamo_graph_deployment": "chat"}, {"endpoint": "8000", "app": "chat"}])
async def test_a_frontend_scraped_by_two_jobs_counts_once(extra):
    """For example by a PodMonitor of the chart and one of the user: twice the requests led to twice the GPUs."""

    def twice(values):
        own = [each._replace(labels={**each.labels, "instance": each.labels["pod"], "job": "a"}) for each in values]
        young = [each._replace(labels={**each.labels, "job": "b", **extra}, value=each.value / 3) for each in own]
        return [*young[:1], *own, *young[1:]]

    answers = healthy(scraped=scraped(range(-178, 1, 15), range(-58, 1, 15)))
    doubled = {name: answer if name == "scraped" else twice(answer) for name, answer in answers.items()}
    assert await read(doubled) == await read(healthy())


def over_time(**answers):
    """Two minutes of requests and their lengths, and those of another model."""

    def two(first, second, **labels):
        return [SeriesValues({**OWN, **labels}, ((NOW - 70, first), (NOW - 10, second)))]

    return {
        "there": series(5.0),
        "started over time": two(60.0, 90.0) + two(1000.0, 1000.0, model="other"),
        "isl over time": two(1000.0, 2000.0),
        "osl over time": two(100.0, 200.0),
        **answers,
    }


async def test_the_past_ends_where_the_newest_sample_begins():
    reading, _ = reader(over_time())
    first, second = await reading.past(120.0, 10.0)
    assert first == PastTraffic(ago=60.0, traffic=Traffic(duration=60.0, requests=60.0, isl=1000.0, osl=100.0))
    assert second == PastTraffic(ago=0.0, traffic=Traffic(duration=60.0, requests=90.0, isl=2000.0, osl=200.0))


@pytest.mark.parametrize(
    "answers",
    [{"there": []}, {"there": PrometheusError("away")}, {"isl over time": PrometheusError("may not be asked")}],
)
async def test_planning_begins_without_a_past_if_it_cannot_be_read(answers):
    reading, _ = reader(over_time(**answers))
    assert await reading.past(120.0, 10.0) == ()


async def test_a_window_too_short_for_scrapes_is_widened():
    reading, client = reader(healthy(scraped=scraped(range(-13, 1, 5))))
    traffic = await reading.read(5.0)
    assert isinstance(traffic, Traffic)
    assert traffic.duration == 15.0
    assert all("[15s]" in promql for promql in client.asked)


async def test_a_window_has_the_seconds_of_its_query():
    """A sixth of 130 s: Prometheus counts the requests of 22 s, which are not those of 21.67 s."""
    reading, client = reader(healthy(scraped=scraped(range(-20, 1, 5))))
    traffic = await reading.read(130 / 6)
    assert isinstance(traffic, Traffic)
    assert traffic.duration == 22.0
    assert all("[22s]" in promql for promql in client.asked)


async def test_model_names_are_case_insensitive_and_other_models_do_not_count():
    answers = healthy(started=[*series(10.0), *series(500.0, model="llama")])
    traffic = await traffic_of(answers, model="QWEN")
    assert traffic.requests == 10


async def test_older_frontends_have_another_counter():
    answers = healthy(total=series(7.0))
    del answers["started"]
    traffic = await traffic_of(answers)
    assert (traffic.requests, traffic.ended) == (7, True)


async def test_a_router_counter_of_started_requests_has_precedence_over_one_of_ended_requests():
    """Routers have it from Dynamo 1.6 on. While load climbs, fewer requests end than start."""
    answers = {**healthy(routed=series(9.0)), "routed, started": series(30.0)}
    traffic = await traffic_of(answers, source=MetricsSource.ROUTER)
    assert (traffic.requests, traffic.ended) == (30, False)
    del answers["routed, started"]
    traffic = await traffic_of(answers, source=MetricsSource.ROUTER)
    assert (traffic.requests, traffic.ended) == (9, True)


async def test_the_hit_rate_comes_from_the_router():
    answers = healthy(routed=[SeriesValue({"dynamo_namespace": "ns_a"}, NOW, 9.0)], hits=[SeriesValue({}, NOW, 0.4)])
    for name in ("isl", "osl", "ttft", "itl"):
        answers[name] = [SeriesValue({}, NOW, 1.0)]
    traffic = await traffic_of(answers, source=MetricsSource.ROUTER)
    assert (traffic.requests, traffic.kv_hit_rate) == (9.0, 0.4)


@pytest.mark.parametrize("hits", [[], [SeriesValue({}, NOW, math.nan)]])
async def test_a_missing_hit_rate_is_not_zero(hits):
    answers = healthy(routed=series(9.0), hits=hits)
    traffic = await traffic_of(answers, source=MetricsSource.ROUTER)
    assert traffic.kv_hit_rate is None


class TestDisaggregated:
    """The runtime's routers of prompts and of tokens each count a request: twice in all, under one name or two."""

    async def test_the_frontend_counts_if_routers_count_twice(self):
        answers = healthy(routed=series(240.0), hits=[SeriesValue({}, NOW, 0.4)])
        traffic = await traffic_of(answers, source=MetricsSource.ROUTER, disaggregated=True)
        assert (traffic.requests, traffic.isl, traffic.osl, traffic.kv_hit_rate) == (120.0, 1500.0, 150.0, 0.4)

    async def test_routers_without_a_frontend_count_by_component(self):
        answers = healthy(routed=[SeriesValue({}, NOW, 120.0)])
        del answers["started"]
        traffic_reader, client = reader(answers, source=MetricsSource.ROUTER, disaggregated=True)
        traffic = await traffic_reader.read(180.0)
        assert isinstance(traffic, Traffic)
        assert traffic.requests == 120
        (asked,) = {promql for promql in client.asked if "increase" in promql and ROUTED in promql}
        of = 'dynamo_namespace=~"ns_a(_[0-9a-f]{8})?",namespace=~"|ns"'
        once = "max without (job, prometheus, prometheus_replica, dynamo_component_type, dynamo_graph_deployment)"
        assert asked == f"max(sum by (dynamo_component) ({once} (increase({ROUTED}{{{of}}}[180s]))))"

    async def test_the_past_is_counted_in_the_same_way(self):
        answers = {
            "there": series(7.0),
            "started over time": [SeriesValues(OWN, ((NOW - 70, 60.0),))],
            "routed over time": [SeriesValues(OWN, ((NOW - 70, 120.0),))],
            "isl over time": [SeriesValues(OWN, ((NOW - 70, 1000.0),))],
            "osl over time": [SeriesValues(OWN, ((NOW - 70, 100.0),))],
        }
        (past,) = await reader(answers, source=MetricsSource.ROUTER, disaggregated=True)[0].past(120.0, before=10.0)
        assert past.traffic.requests == 60

    async def test_missing_requests_are_explained_for_the_configured_source(self):
        outcome = await read({}, source=MetricsSource.ROUTER, disaggregated=True)
        assert why(outcome) is Missing.NO_SERIES
        assert ROUTED_STARTED in outcome.message


class TestNoRequests:
    idle = healthy(
        started=series(0.0, 0.0),
        isl=series(math.nan, math.nan),
        osl=series(math.nan, math.nan),
        ttft=series(math.nan),
        itl=series(math.nan),
    )

    async def test_are_a_number_with_the_last_observed_lengths(self):
        reading, client = reader(healthy())
        await reading.read(180.0)
        client.answers = self.idle
        traffic = await reading.read(180.0)
        assert isinstance(traffic, Traffic)
        assert (traffic.requests, traffic.isl, traffic.osl, traffic.ttft) == (0.0, 1500.0, 150.0, None)

    async def test_zero_requests_count_even_before_any_lengths_were_observed(self):
        traffic = await traffic_of(self.idle)
        assert (traffic.requests, traffic.isl, traffic.osl) == (0.0, 0.0, 0.0)

    async def test_one_idle_frontend_does_not_hide_the_lengths_of_another(self):
        traffic = await traffic_of(healthy(isl=series(1000.0, math.nan)))
        assert traffic.isl == 1000.0


AWAY = PrometheusError("http://prometheus:9090 did not answer within 10 s")
#: The answers of Prometheus, the reason why there is no traffic, and words of the message.
MISSING = {
    "no one answers": ({"started": AWAY}, Missing.UNREACHABLE, "did not answer"),
    "half of the queries fail": (healthy(osl=AWAY), Missing.UNREACHABLE, "did not answer"),
    "nothing is known of the graph": ({}, Missing.NO_SERIES, "dynamo_namespace ns-a"),
    "others are scraped with their label": ({"unlabelled": []}, Missing.NO_SERIES, ""),
    "the label is missing": ({"unlabelled": [SeriesValue({}, NOW, 3.0)]}, Missing.NO_LABEL, labels.DYNAMO_NAMESPACE),
    "one scrape is too few": ({"there": series(3.0)}, Missing.TOO_YOUNG, ""),
    "values stopped": (healthy(scraped=scraped(range(-178, -91, 15))), Missing.STALE, "was last scraped"),
    "a count is not a number": (healthy(started=series(math.nan, 3.0)), Missing.NOT_A_NUMBER, ""),
    "a count is infinite": (healthy(started=series(math.inf, 3.0)), Missing.NOT_A_NUMBER, ""),
    "lengths that no one knows yet": (healthy(isl=series(math.nan)), Missing.NOT_A_NUMBER, "isl"),
    "requests without histograms": (healthy(osl=[]), Missing.NO_SERIES, ""),
}


@rows("answers, why_, said", MISSING)
async def test_without_traffic_there_is_a_reason(answers, why_, said):
    outcome = await read(answers)
    assert (why(outcome), said in outcome.message) == (why_, True)


async def test_the_message_advises_to_set_the_model_name_if_only_another_model_has_series():
    outcome = await read(healthy(there=series(9.0)), model="llama")
    assert (why(outcome), "model_name" in outcome.message) == (Missing.NO_SERIES, True)


class TestScrapes:
    async def test_one_frontend_that_left_does_not_make_the_rest_stale(self):
        answers = healthy(scraped=scraped(range(-178, -100, 15), range(-178, 1, 15)))
        assert isinstance(await read(answers), Traffic)

    @pytest.mark.parametrize("times", [range(-60, 1, 15), range(-178, -100, 15), []])
    async def test_data_of_less_than_half_an_interval_is_too_young(self, times):
        answers = healthy(scraped=scraped(times))
        assert why(await read(answers, stale_after=200.0)) is Missing.TOO_YOUNG

    @pytest.mark.parametrize(
        "times",
        [pytest.param(range(-120, 1, 15), id="began again"), pytest.param(range(-180, -59, 15), id="away until now")],
    )
    async def test_data_of_more_than_half_an_interval_is_extrapolated(self, times):
        traffic = await traffic_of(healthy(scraped=scraped(times)))
        assert traffic.requests == pytest.approx(120 * 180 / 127.5)

    @pytest.mark.parametrize(
        "tracks",
        [
            pytest.param((range(-180, -89, 15), range(-75, 1, 15)), id="half of it each"),
            pytest.param((range(-180, -29, 15), range(-30, 1, 15)), id="an old one that ends later"),
            pytest.param((range(-178, -58, 15), range(-60, -20, 15), range(-15, 1, 15)), id="three in turn"),
        ],
    )
    async def test_successive_frontends_cover_the_interval_together(self, tracks):
        traffic = await traffic_of(healthy(scraped=scraped(*tracks)))
        assert traffic.requests == pytest.approx(120)

    @pytest.mark.parametrize("every", [1, 5, 15, 30, 60])
    @pytest.mark.parametrize("phase", [0, 0.3, 0.9])
    async def test_a_whole_interval_is_not_extrapolated_however_rarely_it_is_scraped(self, every, phase):
        times = [at + phase * every for at in range(-180, 1, every) if at + phase * every <= 0]
        traffic = await traffic_of(healthy(scraped=scraped(times)))
        assert traffic.requests == pytest.approx(120)


class TestQueries:
    def test_are_those_of_dynamos_planner_for_one_namespace(self):
        queries = Queries(MetricsSource.FRONTEND, "ns-a", "ns", 180.0)
        assert queries.requests(STARTED) == f'increase({STARTED}{{dynamo_namespace="ns-a",namespace=~"|ns"}}[180s])'
        metric = "dynamo_frontend_input_sequence_tokens"
        sums, counts = (
            f'(increase({metric}_{part}{{dynamo_namespace="ns-a",namespace=~"|ns"}}[180s]))'
            for part in ("sum", "count")
        )
        assert queries.mean("isl") == f"sum {sums} / sum {counts}"
        of_each = replace(queries, by_model=True)
        assert of_each.mean("isl") == f"sum by (model) {sums} / sum by (model) {counts}"
        assert queries.kv_hit_rate is None

    def test_router_namespaces_are_matched_with_underscores_and_with_worker_generations(self):
        """In a frontend the router uses the workers' namespace: https://github.com/ai-dynamo/dynamo/issues/13461."""
        queries = Queries(MetricsSource.ROUTER, "ns.x-a", "ns", 60.0)
        metric, of = (
            "dynamo_component_router_kv_hit_rate",
            'dynamo_namespace=~"ns\\\\.x_a(_[0-9a-f]{8})?",namespace=~"|ns"',
        )
        assert queries.kv_hit_rate == (
            f"sum (increase({metric}_sum{{{of}}}[60s])) / sum (increase({metric}_count{{{of}}}[60s]))"
        )

    def test_tokens_come_from_the_router_with_the_higher_count(self):
        queries = Queries(MetricsSource.ROUTER, "a", "ns", 60.0, disaggregated=True)
        metric = "dynamo_component_router_output_sequence_tokens"
        sums, counts = (
            f'sum by (dynamo_component) (increase({metric}_{part}{{dynamo_namespace=~"a(_[0-9a-f]{{8}})?",'
            'namespace=~"|ns"}[60s]))'
            for part in ("sum", "count")
        )
        assert queries.mean("osl") == f"max({sums} / {counts})"

    def test_names_can_neither_end_the_quotation_nor_match_others(self):
        queries = Queries(MetricsSource.FRONTEND, 'a"} or vector(1) #\\\n', 'n"s.*-b', 60.0)
        assert '{dynamo_namespace="a\\"} or vector(1) #\\\\\\n",' in queries.requests("m")
        assert 'namespace=~"|n\\"s\\\\.\\\\*-b"}' in queries.requests("m")
        assert queries.unlabelled("m") == 'count(m{dynamo_namespace="",namespace=~"|n\\"s\\\\.\\\\*-b"})'
