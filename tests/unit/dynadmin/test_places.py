"""Who is served while others are slow, and how streams end."""

import asyncio
import random
import socket
import time
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from dynamo_dynadmin.api.kinds import DEPLOYMENTS
from dynamo_dynadmin.http import connection
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.routes import JSON
from dynamo_dynadmin.http.streaming import Stream, StreamEnded
from dynamo_dynadmin.identity.access import AccessVerdict, ResourceAttributes
from dynamo_dynadmin.identity.provider import IssuerUnavailable
from dynamo_dynadmin.identity.who import Caller, Disallowed, Unidentified
from dynamo_shared.kube import Identity
from dynamo_shared.runtime import endpoints

from tests.building.waiting import until

from .http_world import ABSENT, KNOWN, Named, echo, http_server, route_of, server_of, serving, streams_of


async def test_slow_bodies_without_a_caller_do_not_use_up_all_places() -> None:
    """Sessions begin with a body of someone who is not known yet."""
    async with serving(echo, max_in_flight=8) as client:
        head = f"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: {JSON}\r\nContent-Length: 9\r\n\r\n{{"
        slow = [await asyncio.open_connection("127.0.0.1", client.port) for _ in range(2)]
        for _, writer in slow:
            writer.write(head.encode())
        while (await client.post("/x", json={})).status != 429:
            await asyncio.sleep(0)
        for _, writer in slow:
            writer.close()


async def test_pods_that_send_bodies_slowly_do_not_refuse_the_start_of_a_session_of_others() -> None:
    """Each pod has an address of its own; together they had all places of requests without a caller."""
    held = asyncio.Semaphore(0)

    async def handle(call: Call) -> web.StreamResponse:
        held.release()
        return await echo(call)

    async with serving(handle, max_in_flight=16) as client:
        head = f"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: {JSON}\r\nContent-Length: 9\r\n\r\n{{".encode()
        writers = []
        for number in range(12):
            address = (f"127.0.0.{2 + number % 6}", 0)
            _, writer = await asyncio.open_connection("127.0.0.1", client.port, local_addr=address)
            writer.write(head)
            writers.append(writer)
        for _ in range(8):
            await held.acquire()
        assert (await client.post("/x", json={})).status == 200
        for writer in writers:
            writer.close()


async def test_pods_with_many_requests_do_not_delay_others() -> None:
    """A request without a token takes a millisecond, and a pod sends a thousand together."""
    begun = 0

    async def count(call: Call) -> web.StreamResponse:
        nonlocal begun
        begun += 1
        return call.answer({})

    async with serving(count, "GET") as client:
        await client.get("/x")
        pods = [await asyncio.open_connection("127.0.0.1", client.port, local_addr=("127.0.0.2", 0)) for _ in range(50)]
        for _, writer in pods:
            writer.write(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        await client.get("/x")
        assert begun < 25
        for _, writer in pods:
            writer.close()


CALL = cast("Any", SimpleNamespace(request=SimpleNamespace(transport=None), caller=SimpleNamespace(expires=None)))


async def test_a_stream_without_events_sends_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Much came to others in its namespace, and put the heartbeat off each time: pages and proxies gave the stream up."""
    sent: list[bytes] = []

    async def write(content: bytes) -> None:
        sent.append(content)

    async def check() -> None:
        pass

    since = time.monotonic()
    opened = Stream(cast("Any", SimpleNamespace(write=write)), CALL, check, recheck=60, heartbeat=15)
    for passed in range(0, 50, 5):
        monkeypatch.setattr(time, "monotonic", lambda now=since + passed: now)
        await opened.keep()
        if passed == 30:
            await opened.send("MODIFIED", {})
    assert sent == [*[b": heartbeat\n\n"] * 2, b"event: MODIFIED\ndata: {}\n\n", b": heartbeat\n\n"]


def test_a_heartbeat_is_due_one_interval_after_the_last_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came to others just before it was due began another heartbeat of waiting."""
    since = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: since)
    opened = Stream(ABSENT, CALL, ABSENT, recheck=60, heartbeat=15)
    monkeypatch.setattr(time, "monotonic", lambda: since + 13)
    assert opened.timeout() == pytest.approx(2)


async def test_rights_of_a_stream_are_asked_for_again_also_where_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    async def check() -> None:
        asked.append(1)

    since, wall = time.monotonic(), time.time()
    opened = Stream(ABSENT, CALL, check, recheck=60, heartbeat=3600)
    monkeypatch.setattr(time, "time", lambda: wall - 3600)
    monkeypatch.setattr(time, "monotonic", lambda: since + 61)
    assert opened.timeout() == 0.01
    await opened.keep()
    assert asked == [1]


class Withdrawing(Named):
    """After the first question it answers so about a token."""

    def __init__(self, then: Caller | Exception) -> None:
        self._answers = iter([Caller(Identity("ann")), Caller(Identity("ann")), then])

    async def caller(self, token: str) -> Caller:
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("then", "event"),
    [
        (Unidentified("the cluster does not know this token"), "unauthorized"),
        (Disallowed("group system:masters is one of the system"), "unauthorized"),
        (Caller(Identity("ann", groups=("interns",))), "unauthorized"),
        (IssuerUnavailable("the issuer answers 502"), "error"),
    ],
)
async def test_a_stream_ends_once_its_token_is_withdrawn(then: Caller | Exception, event: str) -> None:
    """Rights outlive it: a RoleBinding names a ServiceAccount that was deleted, and the token of a Secret has no end."""

    async def yes(*_: object, **__: object) -> AccessVerdict:
        return AccessVerdict(True, "")

    streams = streams_of(SimpleNamespace(may=yes), recheck=0)

    async def watch(call: Call) -> web.StreamResponse:
        async with streams.opened(call, [ResourceAttributes("watch", DEPLOYMENTS.resource, "a")]) as stream:
            for number in range(3):
                await stream.keep()
                await stream.send("MODIFIED", {"number": number})
        return stream.response

    async with server_of([route_of(watch, "GET", "/x", public=False)], Withdrawing(then)) as client:
        answer = await client.get("/x", headers=KNOWN)
        lines = (await answer.text()).splitlines()
    assert [each.partition(": ")[2] for each in lines if each.startswith("event: ")] == ["MODIFIED", event]


async def test_readers_of_streams_that_end_together_reconnect_at_different_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as all those of a replica that ends."""
    chances = iter((0.0, 0.5, 1.0))
    monkeypatch.setattr(random, "random", lambda: next(chances))
    streams = streams_of()

    async def watch(call: Call) -> web.StreamResponse:
        async with streams.opened(call, []) as stream:
            return stream.response

    async with server_of([route_of(watch, "GET", "/x", public=False)], Named()) as client:
        answers = [await client.get("/x", headers=KNOWN) for _ in range(3)]
        assert [await each.text() for each in answers] == [f"retry: {each}\n\n" for each in (1500, 2250, 3000)]


async def test_a_stream_that_begins_while_the_replica_ends_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = streams_of()
    write = Stream.write

    async def written(stream: Stream, content: bytes) -> None:
        await write(stream, content)
        streams.end()

    monkeypatch.setattr(Stream, "write", written)

    async def watch(call: Call) -> web.StreamResponse:
        async with streams.opened(call, []) as stream:
            await asyncio.Event().wait()
        return stream.response

    async with server_of([route_of(watch, "GET", "/x", public=False)], Named()) as client:
        answer = await client.get("/x", headers=KNOWN)
        assert (await answer.text()).endswith(
            'data: {"detail":"this replica is shutting down; open the stream again"}\n\n'
        )


@pytest.mark.parametrize("may", [True, False])
async def test_a_slow_reader_gets_the_whole_snapshot_as_long_as_it_has_the_right(may: bool) -> None:
    """30 seconds were allowed for each write: a line that took longer for a namespace began again, without end."""
    taken, cut_off, checks = asyncio.Event(), asyncio.Event(), iter(range(3))

    class Slow:
        def get_write_buffer_size(self) -> int:
            return 1 << 20

        abort = cut_off.set

        async def write(self, _: bytes) -> None:
            await taken.wait()

    async def check() -> None:
        if next(checks) == 2:
            taken.set()
            if not may:
                raise StreamEnded("unauthorized", "ann may no longer watch graphs")

    slow: Any = Slow()
    call: Any = SimpleNamespace(request=SimpleNamespace(transport=slow), caller=Caller(Identity("ann")))
    async with asyncio.timeout(10):
        with nullcontext() if may else pytest.raises(ConnectionError, match="may no longer"):
            await Stream(slow, call, check, 0, 1).write(b"x")
    assert cut_off.is_set() is not may


async def test_if_too_much_waits_for_slow_readers_the_user_with_most_of_it_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """300 streams held 800 MiB, each an event of the size that etcd takes; whose line is slow loses nothing by them."""
    large = b"x" * (32 << 20)
    monkeypatch.setattr(connection, "UNSENT", 3 * len(large))
    streams = streams_of(most=9)
    waiting: list[str] = []
    lost: list[str] = []

    async def watch(call: Call) -> web.StreamResponse:
        name = call.request.headers["X-Name"]
        async with streams.opened(call, []) as stream:
            waiting.append(name)
            await stream.send("MODIFIED", large)
        return stream.response

    async def listed(call: Call) -> web.StreamResponse:
        waiting.append(call.request.headers["X-Name"])
        return call.answer(large)

    routes = [route_of(watch, "GET", "/x", public=False), route_of(listed, "GET", "/list", public=False)]
    server = http_server(routes, Named())

    class Connected(connection.HttpConnection):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            # What the kernel takes waits no longer, and that is not the same for each connection.
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
            super().connection_made(transport)

        def connection_lost(self, exc: BaseException | None) -> None:
            lost.append(self.user)
            super().connection_lost(exc)

    connected = partial(Connected, server.unreadable, connection.SlowReaders())
    async with (
        asyncio.timeout(60),
        aiohttp.ClientSession() as client,
        endpoints.serving(server.app(), "127.0.0.1", 0, None, connected) as port,
    ):

        async def begun(user: str, name: str, path: str = "x") -> aiohttp.ClientResponse:
            headers = {"Authorization": f"Bearer {user}", "X-Name": name, "Accept-Encoding": "identity"}
            answer = await client.get(f"http://127.0.0.1:{port}/{path}", headers=headers)
            await until(lambda: name in waiting)
            return answer

        slow = await begun("ann", "slow")
        for name in ("first", "second", "third"):
            await begun("mallory", name)
        await until(lambda: lost == ["mallory"])
        await begun("mallory", "list", "list")
        await until(lambda: lost == ["mallory"] * 2)
        assert len(await slow.read()) > len(large)


async def test_slow_requests_of_one_caller_do_not_use_up_all_places() -> None:
    """Such as chats with a frontend of the caller's own, which never answers."""
    waiting, go = asyncio.Semaphore(0), asyncio.Event()

    async def slow(call: Call) -> web.StreamResponse:
        if call.caller.identity.user == "mallory":
            waiting.release()
            await go.wait()
        return call.answer({})

    async def ask(user: str) -> int:
        return (await client.get("/x", headers={"Authorization": f"Bearer {user}"})).status

    async with server_of([route_of(slow, "GET", "/x", public=False)], Named(), max_in_flight=8) as client:
        begun = [asyncio.create_task(ask("mallory")) for _ in range(2)]
        for _ in begun:
            await waiting.acquire()
        assert await ask("mallory") == 429
        assert await ask("ann") == 200
        go.set()
        assert await asyncio.gather(*begun) == [200, 200]
        assert await ask("mallory") == 200


async def test_tokens_under_review_do_not_use_up_the_places_of_known_callers() -> None:
    """An API server that is slow to say whose they are may have a webhook to ask, and anyone can make up tokens."""
    waiting, go = asyncio.Semaphore(0), asyncio.Event()

    class Slow(Named):
        def remembered(self, token: str) -> Caller | None:
            return Caller(Identity(token)) if token == "ann" else None

        def is_of_cluster(self, token: str) -> bool:
            return token != "of the issuer"

        async def caller(self, token: str) -> Caller:
            if token == "of the issuer":
                return Caller(Identity(token))
            waiting.release()
            await go.wait()
            raise Unidentified("the cluster does not know this token")

    async def answered(call: Call) -> web.StreamResponse:
        return call.answer({})

    async def ask(token: str, session: aiohttp.ClientSession | None = None) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        async with (session or client.session).get(client.make_url("/x"), headers=headers) as answer:
            return answer.status

    async with (
        server_of([route_of(answered, "GET", "/x", public=False)], Slow(), max_in_flight=8) as client,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))) as elsewhere,
    ):
        begun = [asyncio.create_task(ask(f"made-up-{number}")) for number in range(8)]
        for _ in range(4):
            await waiting.acquire()
        # Callers at other addresses keep their share.
        begun.append(asyncio.create_task(ask("elsewhere", elsewhere)))
        await waiting.acquire()
        assert (await ask("ann"), await ask("of the issuer")) == (200, 200)
        go.set()
        assert sorted(await asyncio.gather(*begun)) == [401] * 5 + [503] * 4
        assert await ask("made-up") == 401
