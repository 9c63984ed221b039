"""What the HTTP parser refuses is a problem, too."""

import asyncio
import json
import uuid
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from dynamo_dynadmin.http import connection
from dynamo_dynadmin.http.connection import HttpConnection
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.building.waiting import until

from .http_world import GET, connections_to, http_server, page_of, route_of

TOO_LONG = "the request line or a header is longer than 8190 bytes; send a shorter one"
SECRET = "s3cret" * 2000
with_and_without_tls = pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])


@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        (f"GET /api/v1/me?a={SECRET} HTTP/1.1\r\nHost: a\r\n\r\n", TOO_LONG),
        (f"GET /api/v1/me HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {SECRET}\r\n\r\n", TOO_LONG),
        (f"GET /api/v1/me HTTP/1.1\r\nHost: a\r\n{SECRET}: a\r\n\r\n", TOO_LONG),
        (
            "GET /api/v1/me HTTP/1.1\r\nHost: a\r\nA: \0\r\n\r\n",
            "the request is not valid HTTP: Invalid header value char",
        ),
        (
            "GET /api/v1/me HTTP/1.1\r\nHost: a\r\n" + "A: a\r\n" * 200 + "\r\n",
            "the request is not valid HTTP: Too many headers received",
        ),
    ],
    ids=["request line", "value", "name", "character", "number"],
)
async def test_a_request_that_the_parser_refuses_is_answered_with_a_problem(sent: str, detail: str) -> None:
    registry = CollectorRegistry()
    server = http_server([], registry=registry)
    async with connections_to(server.app(), refuse=server.unreadable) as opened:
        reader, writer = await opened(sent.encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert status.endswith(" 400 Bad Request")
    assert headers["Content-Type"] == "application/problem+json"
    assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
    assert json.loads(body) == {
        "type": "urn:dynamo:problem:bad-request",
        "title": "The request is malformed",
        "status": 400,
        "detail": detail,
        "instance": f"urn:uuid:{uuid.UUID(headers['X-Request-ID'])}",
    }
    answered = {"operation": "none", "status": "400"}
    assert registry.get_sample_value("dynamo_dynadmin_requests_total", answered) == 1


async def test_a_request_whose_client_leaves_is_cancelled_and_recorded() -> None:
    """Simulations of clients that had left went on to their end."""
    registry, begun, ended = CollectorRegistry(), asyncio.Event(), asyncio.Event()

    async def handle(_: Any) -> web.StreamResponse:
        begun.set()
        try:
            return await asyncio.Future()
        finally:
            ended.set()

    server = http_server([route_of(handle, "GET", "/x", public=True)], registry=registry)
    with capture_logs() as lines:
        async with connections_to(server.app()) as opened, asyncio.timeout(60):
            _, writer = await opened(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
            await begun.wait()
            writer.close()
            await ended.wait()
            await until(lambda: bool(lines))
    assert [(line["operation"], line["status"]) for line in lines if line["event"] == "answered"] == [("x", 499)]
    counted = registry.get_sample_value("dynamo_dynadmin_requests_total", {"operation": "x", "status": "499"})
    assert (counted, registry.get_sample_value("dynamo_dynadmin_requests_in_flight")) == (1, 0)


@with_and_without_tls
async def test_of_many_connections_those_of_the_client_with_most_are_closed(tls: bool) -> None:
    """A pod that opened thousands, each with a request, closed those of others before their first request."""
    request = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
    async with connections_to(web.Application(), most=4, tls=tls) as opened, asyncio.timeout(60):

        async def answered(sent: bytes = request) -> Any:
            pod = await opened(sent, "127.0.0.2")
            await pod[0].readuntil(b"HTTP/1.1 404 ")
            return pod

        pods = [await answered() for _ in range(3)]
        other = await opened(b"")
        pods += [await answered() for _ in range(3)]
        other[1].write(request)
        await other[0].readuntil(b"HTTP/1.1 404 ")
        for _, writer in (*pods, other):
            writer.close()


@with_and_without_tls
async def test_of_many_connections_those_without_a_request_are_closed(tls: bool) -> None:
    """No token is needed to open one, and no limit of requests counts it; aiohttp keeps it for an hour."""
    begun, gone = asyncio.Event(), b"GET /x HTTP/1.1\r\nHost: a\r\n"

    async def handle(_: web.Request) -> web.StreamResponse:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with connections_to(page_of(handle), most=3, tls=tls, finish_within=0.1) as opened:
        busy = await opened(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await begun.wait()
        answered = await opened(gone + b"\r\n")
        assert (await answered[0].readline()).startswith(b"HTTP/1.1 404 ")
        half = await opened(gone)
        last = await opened(b"")
        async with asyncio.timeout(10):
            with suppress(ConnectionError):
                assert await half[0].read() == b"", "the first that had no whole request"
            next_ = await opened(b"")
            with suppress(ConnectionError):
                assert await last[0].read() == b""
            for reader, writer in (answered, next_):
                writer.write(gone + b"\r\n")
                await reader.readuntil(b"HTTP/1.1 404 ")
        assert not busy[0].at_eof()
        for _, writer in (busy, answered, next_):
            writer.close()


@with_and_without_tls
@pytest.mark.parametrize("reads", [False, True], ids=["takes nothing", "takes all"])
async def test_a_reader_that_takes_nothing_is_disconnected(
    reads: bool, tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiohttp waits for readers without end: connections, and what is to be sent by them, piled up beyond all limits.

    With TLS nothing said that an answer waits: it went on at once to a connection below, whatever its size.
    """
    monkeypatch.setattr(connection, "TAKEN_WITHIN", 0)
    lost, answer, checks = asyncio.Event(), b"a" * (32 << 20), 0

    class Watched(HttpConnection):
        def connection_lost(self, exc: BaseException | None) -> None:
            super().connection_lost(exc)
            lost.set()

        def _abort_unless_read(self, transport: asyncio.WriteTransport, before: int) -> None:
            nonlocal checks
            if reads and transport.get_write_buffer_size() > before - connection.TAKEN_LEAST:
                # However slow the machine is: the time has not passed before the reader took something.
                self._check = asyncio.get_running_loop().call_later(0.01, self._abort_unless_read, transport, before)
                return
            checks += 1
            super()._abort_unless_read(transport, before)

    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(body=answer)

    async with connections_to(page_of(handle), Watched, tls=tls) as opened:
        reader, writer = await opened(GET)
        if not reads:
            async with asyncio.timeout(60):
                await lost.wait()
        taken = await reader.read()
        writer.close()
    assert taken.endswith(answer) == reads
    assert checks


@with_and_without_tls
async def test_of_many_readers_that_take_nothing_those_waiting_longest_are_disconnected(
    tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request counts no longer once it is answered: lists of large objects, read slowly, took all memory."""
    answer = b"a" * (32 << 20)
    monkeypatch.setattr(connection, "UNSENT", 2 * len(answer), raising=False)
    lost: list[HttpConnection] = []
    paused: dict[HttpConnection, None] = {}

    class Watched(HttpConnection):
        def pause_writing(self) -> None:
            paused[self] = None
            super().pause_writing()

        def connection_lost(self, exc: BaseException | None) -> None:
            lost.append(self)
            super().connection_lost(exc)

    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(body=answer)

    readers: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    async with connections_to(page_of(handle), Watched, tls=tls) as opened:
        for number in range(4):
            readers.append(await opened(GET))
            await until(lambda expected=number + 1: len(paused) >= expected)  # type: ignore[misc]
        await until(lambda: len(lost) == 2)
        assert lost == list(paused)[:2]
        for reader, writer in readers[2:]:
            assert (await reader.read()).endswith(answer)
            writer.close()


async def test_one_large_answer_is_sent_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = b"a" * (32 << 20)
    monkeypatch.setattr(connection, "UNSENT", 1024, raising=False)

    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(body=answer)

    async with connections_to(page_of(handle)) as opened:
        reader, writer = await opened(GET)
        assert (await reader.read()).endswith(answer)
        writer.close()
