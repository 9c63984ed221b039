"""Requests that fail on their way: what is retried, what is not, and what callers get."""

import asyncio
import socket
import ssl
import time
import tracemalloc
from asyncio.sslproto import SSLProtocol
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from dynamo_shared.api.resources import DEPLOYMENTS, PODS, ObjectKey
from dynamo_shared.kube import KubeClient, errors
from dynamo_shared.kube.config import Connection
from dynamo_shared.kube.credentials import Credentials, Identity, LoginCredentials
from dynamo_shared.kube.transport import TLS_BUFFER_BYTES, Outgoing, Transport

from . import steps

KEY = ObjectKey("ns", "a")
OBJECT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "ns"}}


async def test_one_apply_is_one_request(server: Any) -> None:
    server.then(steps.answer(OBJECT))
    assert await server.client().apply(DEPLOYMENTS, OBJECT) == OBJECT
    [observed] = server.requests
    assert (observed.method, observed.path) == ("PATCH", "/apis/apps/v1/namespaces/ns/deployments/a")
    assert observed.query == {"fieldManager": "tester", "force": "true"}
    assert observed.headers["Content-Type"] == "application/apply-patch+yaml"
    assert observed.headers["User-Agent"].startswith("dynamo-platform/")
    assert "Authorization" not in observed.headers
    assert observed.json == OBJECT


@pytest.mark.parametrize("fault", ["reset", "429", "503"])
async def test_a_request_that_may_arrive_twice_is_retried(server: Any, fault: str) -> None:
    bad = steps.reset() if fault == "reset" else steps.refuse(int(fault))
    client = server.client()
    for call in (
        lambda: client.get(DEPLOYMENTS, KEY),
        lambda: client.apply(DEPLOYMENTS, OBJECT),
        lambda: client.apply_status(DEPLOYMENTS, OBJECT),
        lambda: client.delete(DEPLOYMENTS, KEY, uid="u"),
        lambda: client.list(DEPLOYMENTS),
    ):
        server.then(bad, bad, steps.answer({"metadata": {"resourceVersion": "1"}, "items": []}))
        server.waits.clear()
        await call()
        assert len(server.waits) == 2


@pytest.mark.parametrize("status", [429, 503, 500])
async def test_a_request_that_must_not_arrive_twice_is_not_retried(server: Any, status: int) -> None:
    client = server.client()
    for call in (
        lambda: client.create(DEPLOYMENTS, OBJECT),
        lambda: client.merge_patch(DEPLOYMENTS, KEY, {"a": 1}),
        lambda: client.replace(DEPLOYMENTS, OBJECT),
        lambda: client.delete(DEPLOYMENTS, KEY),
    ):
        server.then(steps.refuse(status))
        with pytest.raises(errors.KubeError) as caught:
            await call()
        assert caught.value.status == status
        assert caught.value.retriable
    assert server.waits == []
    assert len(server.requests) == 4


async def test_a_write_is_not_sent_again_on_a_new_connection_if_a_kept_one_breaks(server: Any) -> None:
    """aiohttp does that with PUT and DELETE, without a check whether this replica may still write."""
    client = server.client()
    for call in (lambda: client.replace(DEPLOYMENTS, OBJECT), lambda: client.delete(DEPLOYMENTS, KEY)):
        server.requests.clear()
        server.then(steps.answer(OBJECT), steps.reset())
        await client.get(DEPLOYMENTS, KEY)
        with pytest.raises(errors.Unavailable):
            await call()
        assert len(server.requests) == 2


async def test_a_write_that_waits_for_its_connection_is_not_sent_if_it_is_no_longer_allowed(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that was paused meanwhile gets its connection as soon as it continues, before anything else."""
    held, connect = True, aiohttp.TCPConnector.connect

    async def late(*arguments: Any, **options: Any) -> Any:
        nonlocal held
        connection = await connect(*arguments, **options)
        held = False
        return connection

    client = server.client().guarded(lambda: held)
    monkeypatch.setattr(aiohttp.TCPConnector, "connect", late)
    with pytest.raises(errors.NotHeld, match="PATCH /apis/apps/v1/namespaces/ns/deployments/a: NotHeld"):
        await client.apply(DEPLOYMENTS, OBJECT)
    assert server.requests == []
    server.then(steps.answer(OBJECT))
    assert await client.get(DEPLOYMENTS, KEY) == OBJECT


async def test_retries_back_off_and_end(server: Any) -> None:
    server.then(*[steps.refuse(503)] * 9)
    with pytest.raises(errors.Unavailable):
        await server.client().get(DEPLOYMENTS, KEY)
    assert server.waits == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert len(server.requests) == 5


async def test_retry_after_counts_with_jitter(server: Any) -> None:
    server.then(steps.refuse(429, headers={"Retry-After": "2"}), steps.answer(OBJECT))
    heard: list[errors.KubeError] = []
    await server.client(on_retry=heard.append).get(DEPLOYMENTS, KEY)
    assert server.waits == pytest.approx([2.1])
    assert [each.status for each in heard] == [429]


async def test_a_wait_beyond_the_time_out_is_not_started(server: Any) -> None:
    server.then(steps.refuse(429, headers={"Retry-After": "60"}))
    with pytest.raises(errors.TooManyRequests) as caught:
        await server.client(timeout=5).get(DEPLOYMENTS, KEY)
    assert caught.value.retry_after == 60
    assert server.waits == []


async def test_500_is_not_retried_within_a_call(server: Any) -> None:
    server.then(steps.refuse(500))
    with pytest.raises(errors.Unavailable):
        await server.client().get(DEPLOYMENTS, KEY)
    assert len(server.requests) == 1


async def test_a_missing_answer_is_unavailable_within_the_time_out(server: Any) -> None:
    server.then(steps.hang())
    with pytest.raises(errors.Unavailable) as caught:
        await server.client(timeout=0.05).get(DEPLOYMENTS, KEY)
    assert (caught.value.status, caught.value.reason) == (0, "Timeout")
    assert isinstance(caught.value.__cause__, TimeoutError)


async def test_an_unreachable_server_is_unavailable_with_its_cause(server: Any) -> None:
    client = server.client()
    await server._runner.cleanup()
    with pytest.raises(errors.Unavailable) as caught:
        await client.create(DEPLOYMENTS, OBJECT)
    assert caught.value.status == 0
    assert isinstance(caught.value.__cause__, aiohttp.ClientConnectionError)


async def test_a_cancelled_request_is_cancelled(server: Any) -> None:
    server.then(steps.hang())
    task = asyncio.create_task(server.client().get(DEPLOYMENTS, KEY))
    await server.arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_retried_delete_of_a_missing_object_succeeds(server: Any) -> None:
    server.then(steps.refuse(503), steps.refuse(404, "NotFound"))
    await server.client().delete(DEPLOYMENTS, KEY, uid="u")
    assert server.requests[0].json == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u"},
    }


async def test_a_first_delete_of_a_missing_object_raises(server: Any) -> None:
    server.then(steps.refuse(404, "NotFound"))
    with pytest.raises(errors.NotFound):
        await server.client().delete(DEPLOYMENTS, KEY, uid="u")
    # A refused token does not count: nothing can have been deleted.
    server.then(steps.refuse(401), steps.refuse(404, "NotFound"))
    with pytest.raises(errors.NotFound):
        await server.client(credentials=Renewable()).delete(DEPLOYMENTS, KEY)


async def test_answers_are_bounded_with_and_without_a_length(server: Any) -> None:
    client = server.client(max_response_bytes=100)
    server.then(steps.text("x" * 101), steps.watch(b"x" * 101))
    for _ in range(2):
        with pytest.raises(errors.ResponseTooLarge):
            await client.raw_get("/version")
    server.then(steps.text("x" * 100), steps.watch(b"x" * 60, b"y" * 40))
    assert await client.raw_get("/version") == b"x" * 100
    assert await client.raw_get("/version") == b"x" * 60 + b"y" * 40


async def test_an_answer_that_is_not_a_json_object_is_unavailable(server: Any) -> None:
    server.then(steps.text("<html>sign in</html>"))
    with pytest.raises(errors.Unavailable, match="not a JSON object"):
        await server.client().get(DEPLOYMENTS, KEY)


async def test_a_too_deep_object_is_read_without_its_deep_value(server: Any) -> None:
    """The same as in a watch. A user may store such an object, and it blocked the list of all others."""
    deep = '{"metadata": {"resourceVersion": "1"}, "items": [{"spec": ' + "[" * 5000 + "]" * 5000 + "}]}"
    server.then(steps.text(deep), steps.text(deep), steps.text(deep, 500))
    client = server.client()
    assert (await client.get(DEPLOYMENTS, KEY))["metadata"] == {"resourceVersion": "1"}
    [item] = await client.list(PODS)
    assert item["kind"] == "Pod"
    with pytest.raises(errors.Unavailable):
        await client.get(DEPLOYMENTS, KEY)


async def test_redirects_are_not_followed(server: Any) -> None:
    server.then(steps.answer({}, 302, {"Location": "http://127.0.0.1:1/steal"}))
    with pytest.raises(errors.KubeError) as caught:
        await server.client().get(DEPLOYMENTS, KEY)
    assert caught.value.status == 302


class Renewable(Credentials):
    """Credentials whose token the server rejects."""

    def __init__(self) -> None:
        super().__init__("Bearer old")
        self.is_stale = False
        self.refreshed: list[bool] = []

    def stale(self) -> bool:
        return self.is_stale

    async def refresh(self, *, force: bool = False) -> bool:
        self.refreshed.append(force)
        self.authorization, self.is_stale = "Bearer new", False
        return True


async def test_rejected_credentials_are_renewed_once_for_all_requests(server: Any) -> None:
    credentials = Renewable()
    server.then(steps.refuse(401), steps.answer(OBJECT))
    await server.client(credentials=credentials).create(DEPLOYMENTS, OBJECT)
    assert [observed.headers["Authorization"] for observed in server.requests] == ["Bearer old", "Bearer new"]
    server.then(steps.refuse(401), steps.refuse(401))
    with pytest.raises(errors.Unauthorized):
        await server.client(credentials=credentials).create(DEPLOYMENTS, OBJECT)
    assert credentials.refreshed == [True, True]


async def test_a_request_that_is_rejected_after_another_has_renewed_is_retried(server: Any) -> None:
    class JustRenewed(Renewable):
        async def refresh(self, *, force: bool = False) -> bool:
            return False

    credentials = JustRenewed()

    async def late(request: web.Request) -> web.StreamResponse:
        credentials.authorization = "Bearer new"
        return await steps.refuse(401)(request)

    server.then(late, steps.answer(OBJECT), steps.refuse(401))
    client = server.client(credentials=credentials)
    await client.get(DEPLOYMENTS, KEY)
    assert [observed.headers["Authorization"] for observed in server.requests] == ["Bearer old", "Bearer new"]
    with pytest.raises(errors.Unauthorized):
        await client.get(DEPLOYMENTS, KEY)


async def test_stale_credentials_are_renewed_before_a_request(server: Any) -> None:
    credentials = Renewable()
    credentials.is_stale = True
    server.then(steps.answer(OBJECT))
    await server.client(credentials=credentials).get(DEPLOYMENTS, KEY)
    assert server.requests[0].headers["Authorization"] == "Bearer new"
    assert credentials.refreshed == [False]


async def test_credentials_that_cannot_be_renewed_are_unavailable(server: Any) -> None:
    class Broken(Renewable):
        async def refresh(self, *, force: bool = False) -> bool:
            raise OSError("no such plugin")

    server.then(steps.refuse(401))
    with pytest.raises(errors.Unavailable, match="no such plugin"):
        await server.client(credentials=Broken()).get(DEPLOYMENTS, KEY)
    assert server.waits == []


async def test_a_login_ends_with_its_client(server: Any) -> None:
    """Its plugin went on running."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def login() -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    client = server.client(credentials=LoginCredentials(login, "Bearer old", time.time() - 1))
    request = asyncio.create_task(client.get(DEPLOYMENTS, KEY))
    await begun.wait()
    await client.close()
    assert over.is_set()
    with pytest.raises(errors.Unavailable, match="the client was closed"):
        await request


async def test_a_list_follows_pages_and_completes_items(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamo_shared.kube.client.PAGE_SIZE", 1)
    server.then(
        steps.answer({"metadata": {"resourceVersion": "5", "continue": "t/1"}, "items": [{"metadata": {"name": "a"}}]}),
        steps.answer({"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "b"}}]}),
    )
    pods = await server.client().list(PODS, "ns", label_selector="a=b,c")
    assert [item["metadata"]["name"] for item in pods] == ["a", "b"]
    assert all((item["apiVersion"], item["kind"]) == ("v1", "Pod") for item in pods)
    assert [observed.query for observed in server.requests] == [
        {"labelSelector": "a=b,c", "limit": "1"},
        {"labelSelector": "a=b,c", "limit": "1", "continue": "t/1"},
    ]


async def test_a_list_that_expires_midway_starts_over_without_pages(server: Any) -> None:
    page = {"metadata": {"resourceVersion": "5", "continue": "t"}, "items": [{"metadata": {"name": "a"}}]}
    whole = {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "b"}}]}
    server.then(steps.answer(page), steps.refuse(410, "Expired"), steps.answer(whole))
    pods = await server.client().list(PODS)
    assert [item["metadata"]["name"] for item in pods] == ["b"]
    assert server.requests[2].query == {}


async def test_a_list_uses_smaller_pages_if_they_are_too_large(server: Any) -> None:
    small = {"metadata": {"resourceVersion": "5"}, "items": None}
    server.then(steps.text("x" * 1000), steps.answer(small))
    assert len(await server.client(max_response_bytes=500).list(PODS)) == 0
    assert [observed.query["limit"] for observed in server.requests] == ["500", "62"]


@pytest.mark.parametrize(
    "answer", [{"kind": "Status", "metadata": {}, "code": 503}, {"metadata": {"resourceVersion": ""}}, {"items": []}]
)
async def test_an_answer_of_a_gateway_is_not_an_empty_list(server: Any, answer: Any) -> None:
    server.then(steps.answer(answer))
    with pytest.raises(errors.Unavailable):
        await server.client().list(PODS)


async def test_requests_are_observed(server: Any) -> None:
    observed: list[tuple[str, str, int]] = []
    client = server.client(observer=lambda method, path, status, _seconds: observed.append((method, path, status)))
    server.then(steps.refuse(503), steps.answer(OBJECT), steps.reset())
    await client.get(DEPLOYMENTS, KEY)
    path = DEPLOYMENTS.path("ns", "a")
    assert observed == [("GET", path, 503), ("GET", path, 200)]
    with pytest.raises(errors.Unavailable):
        await client.create(DEPLOYMENTS, OBJECT)
    assert observed[-1] == ("POST", DEPLOYMENTS.path("ns"), 0)


async def test_another_field_manager_shares_the_connections(server: Any) -> None:
    client = server.client()
    other = client.acting_as("dynamo-scaler")
    await other.close()
    server.then(steps.answer(OBJECT), steps.answer(OBJECT))
    await client.create(DEPLOYMENTS, OBJECT, dry_run=True)
    await other.apply(DEPLOYMENTS, OBJECT, force=False, dry_run=True)
    assert server.requests[0].query == {"fieldManager": "tester", "fieldValidation": "Strict", "dryRun": "All"}
    assert server.requests[1].query == {"fieldManager": "dynamo-scaler", "force": "false", "dryRun": "All"}


async def test_a_client_that_impersonates_a_user_does_so_in_all_requests_and_only_for_that_user(server: Any) -> None:
    client = server.client()
    acting = client.for_identity(Identity("ann", "7", ("dev",)), request="r", field_manager="x")
    server.then(steps.answer(OBJECT), steps.text(""), steps.answer(OBJECT))
    await acting.acting_as("y").guarded(lambda: True).apply(DEPLOYMENTS, OBJECT)
    async with acting.stream_log(KEY, "", silence=5):
        pass
    await client.get(DEPLOYMENTS, KEY)
    names = ("Impersonate-User", "Impersonate-Uid", "Impersonate-Group", "Audit-ID")
    sent = [tuple(each.headers.get(name) for name in names) for each in server.requests]
    assert sent == [("ann", "7", "dev", "r"), ("ann", "7", "dev", "r"), (None, None, None, None)]
    guarded = client.guarded(lambda: False).for_identity(Identity("ann"), request="r", field_manager="x")
    with pytest.raises(errors.NotHeld):
        await guarded.apply(DEPLOYMENTS, OBJECT)
    with pytest.raises(TypeError):
        acting.for_identity(Identity("bob"), request="r", field_manager="x")
    with pytest.raises(ValueError, match="user name"):
        client.for_identity(Identity(""), request="r", field_manager="x")


async def test_a_span_is_created_only_if_one_is_recording(server: Any) -> None:
    from opentelemetry.sdk.trace import TracerProvider

    server.then(steps.answer(OBJECT), steps.answer(OBJECT))
    client = server.client()
    await client.get(DEPLOYMENTS, KEY)
    with TracerProvider(shutdown_on_exit=False).get_tracer("test").start_as_current_span("reconcile") as span:
        await client.get(DEPLOYMENTS, KEY)
    assert "traceparent" not in server.requests[0].headers
    assert f"{span.get_span_context().trace_id:032x}" in server.requests[1].headers["traceparent"]


async def test_bodies_are_compact_json(server: Any) -> None:
    server.then(steps.answer(OBJECT))
    await server.client().merge_patch(DEPLOYMENTS, KEY, {"spec": {"replicas": None}}, subresource="status")
    assert server.requests[0].body == b'{"spec":{"replicas":null}}'
    assert server.requests[0].path.endswith("/deployments/a/status")


async def test_the_body_for_a_service_ends_with_its_last_chunk(server: Any) -> None:
    """With a length, a Service may answer before the API server has read the end, which then breaks off the answer."""
    server.then(steps.text("data: {}"))
    async with server.client().service_proxy(ObjectKey("ns", "web"), 8000, "/chat", body=b"{}", silence=5) as content:
        assert await content.read() == b"data: {}"
    sent = server.requests[0]
    assert (sent.headers["Transfer-Encoding"], sent.body) == ("chunked", b"{}")
    assert "Content-Length" not in sent.headers


async def test_a_stream_through_a_proxy_without_an_answer_times_out() -> None:
    async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    proxy = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    through = Connection("https://api.test:6443", None, None, f"http://127.0.0.1:{port}", Credentials(None), "default")
    transport = Transport(through, timeout=60)
    try:
        async with asyncio.timeout(30):
            with pytest.raises(errors.Unavailable) as caught:
                async with transport.stream(Outgoing(method="GET", path="/api/v1/pods"), silence=0.05):
                    pass
        assert caught.value.reason == "Timeout"
    finally:
        await transport.close()
        proxy.close()


async def test_the_buffer_for_a_slow_reader_of_pod_output_is_small() -> None:
    written, full = 0, asyncio.Event()

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await reader.readuntil(b"\r\n\r\n")
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
        writer.transport.set_write_buffer_limits(0)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not full.is_set():
            writer.write(b"x" * (1 << 14))
            try:
                async with asyncio.timeout(0.2):
                    await writer.drain()
            except TimeoutError:
                full.set()
            written += 1 << 14
        writer.transport.abort()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    transport = Transport(Connection(url, None, None, None, Credentials(None), "default"), timeout=5)
    try:
        async with asyncio.timeout(60), KubeClient(transport, field_manager="t").stream_log(KEY, "", silence=60):
            await full.wait()
    finally:
        await transport.close()
        server.close()
    assert written < 1 << 18, written


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has all of them")
@pytest.mark.parametrize("small", [False, True])
async def test_the_socket_detects_a_peer_that_vanished(
    server: Any, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    server.then(steps.answer(OBJECT), steps.answer(OBJECT))
    client = server.client()
    monkeypatch.setattr("dynamo_shared.kube.transport.socket.socket", Noted)
    await client.get(DEPLOYMENTS, KEY)
    outgoing = Outgoing(method="GET", path="/", small_buffers=small)
    async with client._transport.stream(outgoing, silence=5) as body:
        await body.read()
        assert len(made) == 2
        for each in made:
            assert each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            probes = [getattr(socket, name) for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_USER_TIMEOUT")]
            assert [each.getsockopt(socket.IPPROTO_TCP, name) for name in probes] == [30, 5, 15_000]


async def test_a_tls_connection_has_a_small_buffer() -> None:
    loop, context = asyncio.get_running_loop(), ssl.create_default_context()
    tracemalloc.start()
    try:
        connections = [
            SSLProtocol(loop, asyncio.Protocol(), context, loop.create_future(), server_hostname="server")
            for _ in range(10)
        ]
        bytes_each = tracemalloc.get_traced_memory()[0] / len(connections)
    finally:
        tracemalloc.stop()
    assert TLS_BUFFER_BYTES <= bytes_each < 2 * TLS_BUFFER_BYTES
