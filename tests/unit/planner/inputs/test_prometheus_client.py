"""HTTP queries to Prometheus: authentication, and the handling of invalid answers."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from dynamo_devcluster.certs import CertificateAuthority
from dynamo_planner.core.observation import Missing
from dynamo_planner.inputs.prometheus import client as client_module
from dynamo_planner.inputs.prometheus.client import (
    MAX_POINTS,
    MAX_SERIES,
    MAX_SERIES_BYTES,
    PrometheusClient,
    PrometheusConnections,
    PrometheusError,
)
from dynamo_planner.inputs.prometheus.options import PrometheusOptions
from dynamo_shared.runtime.endpoints import serving


def vector(*values):
    result = [{"metric": {"model": "a"}, "value": [1.5, value]} for value in values]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


class Server:
    """Gives the answers that a test sets; `requests` records the requests."""

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.status = 200
        self.body: bytes = json.dumps(vector("1")).encode()
        self.headers: dict[str, str] = {}
        self.hang = False
        self.ended = asyncio.Event()
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        if self.hang:
            await self.ended.wait()
        return web.Response(status=self.status, body=self.body, headers=self.headers)

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self.answer)
        async with serving(app, "127.0.0.1", 0, tls) as port:
            self.url = f"http{'s' if tls else ''}://127.0.0.1:{port}"
            try:
                yield self
            finally:
                self.ended.set()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server().serving() as made:
        yield made


async def ask(server, promql="up", **options):
    async with PrometheusClient.open(PrometheusOptions(url=server.url, **options)) as client:
        return await client.query(promql)


async def refused(server, **options) -> PrometheusError:
    with pytest.raises(PrometheusError) as caught:
        await ask(server, **options)
    return caught.value


async def test_values_come_with_labels_and_time(server):
    server.body = json.dumps(vector("2.5", "NaN", "+Inf")).encode()
    first, second, third = await ask(server, "sum(up) by (model)", timeout=3.0)
    assert first == ({"model": "a"}, 1.5, 2.5)
    assert second.value != second.value
    assert third.value == float("inf")
    query = server.requests[0].query
    assert server.requests[0].path == "/api/v1/query"
    assert dict(query) == {"query": "sum(up) by (model)", "timeout": "3s"}


async def ask_all(server, asked, *answered):
    series = [{"metric": {"dynamo_planner_asked": name, "model": "a"}, "value": [1.5, "2"]} for name in answered]
    server.body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}}).encode()
    async with PrometheusClient.open(PrometheusOptions(url=server.url)) as client:
        return await client.query_all(asked)


async def test_several_queries_are_one_request_and_each_gets_its_own_answer(server):
    answers = await ask_all(server, {"isl": "a / b", "osl": "c", "none": "d"}, "osl", "isl", "osl")
    value = ({"model": "a"}, 1.5, 2.0)
    assert answers == {"isl": [value], "osl": [value, value], "none": []}
    (request,) = server.requests
    assert request.query["query"] == (
        'label_replace(a / b, "dynamo_planner_asked", "isl", "", "") or '
        'label_replace(c, "dynamo_planner_asked", "osl", "", "") or '
        'label_replace(d, "dynamo_planner_asked", "none", "", "")'
    )


@pytest.mark.parametrize("name", ["", "osl"])
async def test_an_answer_to_an_unknown_query_is_rejected(server, name):
    with pytest.raises(PrometheusError, match="does not request"):
        await ask_all(server, {"isl": "a"}, name)


async def test_graphs_share_the_connections_to_the_platforms_prometheus():
    """Each graph had four of its own: some hundred graphs used all connections that a Prometheus accepts."""
    shared, options = PrometheusConnections(), PrometheusOptions(url="http://prometheus")
    async with PrometheusClient.open(options, shared) as one, PrometheusClient.open(options, shared) as other:
        assert one.connections is other.connections is shared
    assert not shared.connector.closed, "others are asked for still"
    async with PrometheusClient.open(replace(options, named_by_tenant=True), shared) as own:
        assert own.connections is not shared, "those check where they lead to"
    assert own.connections.connector.closed
    await shared.close()
    assert shared.connector.closed


async def test_times_of_samples(server):
    result = [{"metric": {}, "values": [[1.0, "1"], [2.0, "5"]]}]
    server.body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
    async with PrometheusClient.open(PrometheusOptions(url=server.url)) as client:
        assert await client.scrapes("up[5s]", at=1700000000.5) == [({}, (1.0, 2.0))]
    assert server.requests[0].query["time"] == "1700000000.500"


async def test_values_over_time(server):
    def matrix(*values: tuple[float, str]) -> bytes:
        result = [{"metric": {"model": "a"}, "values": values}]
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()

    server.body = matrix((60.0, "1.5"), (120.0, "NaN"))
    async with PrometheusClient.open(PrometheusOptions(url=server.url)) as client:
        (series,) = await client.query_range("rate(up[1m])", since=60.0, until=120.0, step=60.0)
        assert series.labels == {"model": "a"}
        assert series.points[0] == (60.0, 1.5)
        assert series.points[1][1] != series.points[1][1]
        assert server.requests[0].path == "/api/v1/query_range"
        times = {name: server.requests[0].query[name] for name in ("start", "end", "step")}
        assert times == {"start": "60.000", "end": "120.000", "step": "60.000"}
        server.body = matrix((60.0, "much"))
        with pytest.raises(PrometheusError, match="not a number"):
            await client.query_range("up", since=60.0, until=120.0, step=60.0)


async def test_parameters_and_token_are_sent_and_the_token_file_is_read_each_time(server, tmp_path: Path):
    await ask(server, token="secret", extra_params={"tenant": "a", "query": "mine"})
    assert server.requests[0].headers["Authorization"] == "Bearer secret"
    assert server.requests[0].query["tenant"] == "a"
    assert server.requests[0].query.getall("query") == ["up"]
    file = tmp_path / "token"
    async with PrometheusClient.open(PrometheusOptions(url=server.url, token_file=file)) as client:
        for token in ("one", "two"):
            file.write_text(f"{token}\n")
            await client.query("up")
            assert server.requests[-1].headers["Authorization"] == f"Bearer {token}"
        file.unlink()
        with pytest.raises(PrometheusError, match=r"token file .* cannot be read"):
            await client.query("up")


async def test_an_invalid_token_is_not_repeated_in_the_error(server):
    error = await refused(server, token="secret\r\nX: y")
    assert "secret" not in str(error)
    assert not server.requests


@pytest.mark.parametrize("status", [401, 403])
async def test_a_missing_right_is_reported(server, status):
    server.status = status
    assert "set a token" in str(await refused(server))


async def test_redirections_are_not_followed(server):
    server.status, server.headers = 302, {"Location": f"{server.url}/elsewhere"}
    assert "redirects" in str(await refused(server, token="secret"))
    assert len(server.requests) == 1


async def test_the_error_type_of_prometheus_is_repeated_and_nothing_else(server):
    server.status = 422
    server.body = json.dumps({"status": "error", "errorType": "execution", "error": "too many samples"}).encode()
    assert str(await refused(server)).endswith("answers 422: execution")
    server.body = json.dumps({"status": "error", "errorType": "AKIA123", "error": "secret"}).encode()
    assert str(await refused(server)).endswith("answers 422")
    server.status, server.body = 503, b"<html>internal address 10.0.0.7</html>"
    assert str(await refused(server)).endswith("answers 503")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html>", "sends an answer that is not in the format of Prometheus"),
        (b"\xff", "sends an answer that is not in the format of Prometheus"),
        (b'{"status": "success"}', "answers with an error"),
        (
            b'{"status": "success", "data": {"resultType": "scalar", "result": []}}',
            "another type of result than vector",
        ),
        (b'{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}}]}}', "without a value"),
    ],
)
async def test_invalid_answers(server, body, words):
    server.body = body
    error = await refused(server)
    assert words in str(error)
    assert error.why is Missing.UNREACHABLE


async def test_partial_data_does_not_count(server):
    """Thanos answers so while a store is away: traffic of some frontends counted as all of it."""
    server.body = json.dumps(
        {**vector("1"), "warnings": ["receive series from Addr: store: deadline exceeded"]}
    ).encode()
    error = await refused(server)
    assert "is incomplete" in str(error)
    assert error.why is Missing.UNREACHABLE


@pytest.mark.parametrize("kind", ["PromQL warning", "PromQL info"])
async def test_a_warning_about_the_query_does_not_invalidate_its_answer(server, kind):
    server.body = json.dumps({**vector("1"), "warnings": [f"{kind}: metric might not be a counter"]}).encode()
    async with PrometheusClient.open(PrometheusOptions(url=server.url)) as client:
        assert [each.value for each in await client.query("up")] == [1.0]


async def test_values_that_are_not_numbers(server):
    server.body = json.dumps(vector("many")).encode()
    assert (await refused(server)).why is Missing.NOT_A_NUMBER


async def test_answers_are_bounded(server):
    server.body = b" " * 5000
    assert "sends more than 2 KiB" in str(await refused(server, max_answer=2048))


async def test_series_are_bounded(server):
    """Empty series are 13 bytes, and each costs the event loop as much as a series with values."""
    many = b", ".join([b'{"metric": {}}'] * (MAX_SERIES + 1))
    server.body = b'{"status": "success", "data": {"resultType": "vector", "result": [%s]}}' % many
    assert f"sends more than {MAX_SERIES} series" in str(await refused(server))


def matrix(*series: list[tuple[float, str]]) -> bytes:
    result = [{"metric": {"model": "a"}, "values": values} for values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


@pytest.mark.parametrize(
    "series",
    [
        [[(60.0, "1"), (90.0, "1"), (120.0, "1")]],
        [[(60.0, "1"), (60.0, "1"), (60.0, "1")]],
        [[(60.0, "1"), (120.0, "1")], [(90.0, "1")]],
    ],
)
async def test_values_over_time_have_only_the_requested_times(server, series):
    """The owner of a graph names the server: 400,000 times in one answer held up all planning for half a minute."""
    server.body = matrix(*series)
    async with PrometheusClient.open(PrometheusOptions(url=server.url)) as client:
        with pytest.raises(PrometheusError, match="more times than the query requests"):
            await client.query_range("up", since=60.0, until=120.0, step=60.0)


async def test_points_of_a_series_are_bounded(server):
    server.body = matrix([(1.0, "1")] * (MAX_POINTS + 1))
    async with PrometheusClient.open(PrometheusOptions(url=server.url)) as client:
        with pytest.raises(PrometheusError, match=f"more than {MAX_POINTS} points of a series"):
            await client.scrapes("up[5s]", at=1.0)
        server.body = matrix([(1.0, "1" * MAX_SERIES_BYTES)])
        with pytest.raises(PrometheusError, match=f"more than {MAX_POINTS} points of a series"):
            await client.scrapes("up[5s]", at=1.0)


async def test_large_answers_are_read_in_a_thread(server, monkeypatch: pytest.MonkeyPatch):
    threads: list[threading.Thread] = []
    read = client_module._series

    def recorded(*arguments):
        threads.append(threading.current_thread())
        return read(*arguments)

    monkeypatch.setattr(client_module, "_series", recorded)
    await ask(server)
    server.body += b" " * (64 << 10)
    await ask(server)
    assert [each is threading.main_thread() for each in threads] == [True, False]


async def test_time_is_bounded(server):
    server.hang = True
    assert "did not answer within 0.05 s" in str(await refused(server, timeout=0.05))


async def test_an_unreachable_server_is_reported(server):
    server.url = "http://127.0.0.1:1"
    assert "cannot be queried" in str(await refused(server))


class TestTls:
    @pytest.fixture
    def authority(self, tmp_path: Path) -> CertificateAuthority:
        return CertificateAuthority(tmp_path / "ca")

    @pytest.fixture
    async def secure(self, authority: CertificateAuthority) -> AsyncIterator[Server]:
        pair = authority.server("prometheus")
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(pair.certificate, pair.key)
        async with Server().serving(tls) as made:
            yield made

    async def test_certificates_of_a_named_authority_are_trusted(self, secure, authority):
        assert await ask(secure, ca_file=authority.certificate)

    async def test_other_certificates_are_rejected(self, secure):
        assert "cannot be queried" in str(await refused(secure, token="secret"))
        assert not secure.requests

    async def test_other_certificates_are_accepted_without_verification(self, secure):
        assert await ask(secure, verify=False)

    async def test_an_invalid_ca_file_is_named(self, secure, tmp_path):
        (tmp_path / "bad.pem").write_text("no certificate")
        assert "bad.pem cannot be used" in str(await refused(secure, ca_file=tmp_path / "bad.pem"))


async def test_namespaces_take_turns_at_large_answers(server):
    """A tenant whose graphs name a Prometheus with large answers held up the answers of all others."""
    go_on = threading.Event()
    options = PrometheusOptions(url=server.url)
    async with PrometheusClient.open(options, lane="busy") as busy, PrometheusClient.open(options, lane="other") as one:
        reads = [asyncio.create_task(busy.offload(1 << 20, go_on.wait)) for _ in range(100)]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(30):
                await one.offload(1 << 20, bool)
        finally:
            go_on.set()
            await asyncio.gather(*reads)
