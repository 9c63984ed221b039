"""Requests as they arrive over HTTP, up to what handlers get."""

import asyncio
import dataclasses
import random
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from dynamo_dynadmin.api.acting import Actions
from dynamo_dynadmin.api.chat import Chat
from dynamo_dynadmin.api.cluster import Cluster
from dynamo_dynadmin.api.kinds import DEPLOYMENTS, MODELS, REQUESTS, Kind
from dynamo_dynadmin.api.ownership import merged
from dynamo_dynadmin.api.routes.session import session
from dynamo_dynadmin.api.sessions import AT_ONCE_OF_ONE, SessionPages
from dynamo_dynadmin.api.writing import Writing
from dynamo_dynadmin.http import call as calls
from dynamo_dynadmin.http import connection
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.http.routes import JSON, JSON_PATCH, MERGE_PATCH, ResponseSpec, Route, flag
from dynamo_dynadmin.http.server import HttpServer
from dynamo_dynadmin.http.streaming import Stream, Streams
from dynamo_dynadmin.identity.access import AccessVerdict, ResourceAttributes
from dynamo_dynadmin.identity.login import Logins
from dynamo_dynadmin.identity.provider import Endpoints, IssuerUnavailable
from dynamo_dynadmin.identity.session import COOKIE, LOGIN_COOKIE, Sessions
from dynamo_dynadmin.identity.who import Caller, Disallowed, Unidentified
from dynamo_dynadmin.metrics import DynadminMetrics
from dynamo_shared.kube import Conflict, Identity, Invalid
from dynamo_shared.runtime import endpoints
from dynamo_shared.runtime.settings.dynadmin import Dynadmin, Oidc
from multidict import CIMultiDict
from prometheus_client import CollectorRegistry

from tests.building.waiting import until

ABSENT = cast("Any", None)
PAGE = "https://portal.test"
WITHIN = 5.0

Handle = Callable[[Call], Awaitable[web.StreamResponse]]
Client = TestClient[web.Request, web.Application]


@asynccontextmanager
async def server_of(
    routes: Iterable[Route], kube: Any = ABSENT, sessions: Any = ABSENT, **settings: Any
) -> AsyncIterator[Client]:
    """A server of these routes; `kube` is also who says whose a token is."""
    metrics = DynadminMetrics(CollectorRegistry())
    server = HttpServer(routes, kube, tokens=kube, sessions=sessions, metrics=metrics, settings=Dynadmin(**settings))
    async with asyncio.timeout(WITHIN), TestClient(TestServer(server.app())) as client:
        yield client


def route_of(handle: Handle, method: str, path: str, *, public: bool) -> Route:
    return Route(
        method=method,
        path=path,
        operation="x",
        summary="",
        tag="",
        handle=handle,
        answers={200: ResponseSpec("")},
        body={JSON: "Any", MERGE_PATCH: "Any", JSON_PATCH: "Any"},
        public=public,
    )


def serving(
    handle: Handle, method: str = "POST", path: str = "/x", **settings: Any
) -> AbstractAsyncContextManager[Client]:
    """One public route."""
    return server_of([route_of(handle, method, path, public=True)], **settings)


def asking(kube: Any, handle: Callable[..., Awaitable[web.StreamResponse]], *arguments: Any) -> Handle:
    """A handler for which this is the API server."""

    async def handler(call: Call) -> web.StreamResponse:
        return await handle(dataclasses.replace(call, kube=kube), *arguments)

    return handler


async def echo(call: Call) -> web.StreamResponse:
    return call.answer(await call.body())


@pytest.mark.parametrize(
    "body",
    [
        rb'{"labels": {"a": "\ud800"}}',
        rb'{"\udfff": 1}',
        b'{"a": 1e999}',
        b'{"a": NaN}',
        b'{"a": "\xff"}',
        b'{"a": 1} {}',
        b"",
        b'{"a":' * 200 + b"1" + b"}" * 200,
        b"[" * 900 + b"]" * 900,
        b"[" * 100_000,
    ],
    ids=["surrogate", "surrogate in a key", "infinite", "NaN", "UTF-8", "two", "none", "deep", "list", "open"],
)
async def test_what_is_not_json_or_cannot_be_sent_on_is_a_mistake_of_the_caller(body: bytes) -> None:
    async with serving(echo) as client:
        answer = await client.post("/x", data=body, headers={"Content-Type": JSON})
        assert (answer.status, (await answer.json())["type"]) == (400, "urn:dynamo:problem:bad-request")


async def test_what_is_json_arrives_as_it_is() -> None:
    body = {"a": [1, -1.5, True, None, "\u00e4\U0001f600", 10**30], "b": {}}
    async with serving(echo) as client:
        assert await (await client.post("/x", json=body)).json() == body


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"spec": [{"replicas": 1, "replicas": 3}]}', "the body is not valid: the key 'replicas' is given twice"),
        (b"  ", "the body is empty"),
        (b"[]" + b" " * 1024, "the body has more than 1024 bytes, and no more are taken"),
    ],
    ids=["twice", "empty", "long"],
)
async def test_a_refusal_of_a_body_says_what_is_wrong(body: bytes, detail: str) -> None:
    async with serving(echo, max_body_bytes=1024) as client:
        answer = await client.post("/x", data=body, headers={"Content-Type": JSON})
        assert (await answer.json())["detail"] == detail


async def test_a_body_that_is_not_packed_as_it_says_is_a_mistake_of_the_caller() -> None:
    async with serving(echo) as client:
        headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
        answer = await client.post("/x", data=b"not gzip at all", headers=headers)
        assert (answer.status, (await answer.json())["type"]) == (400, "urn:dynamo:problem:bad-request")


@pytest.mark.parametrize("target", ["/%ed%a0%80%ff", "/x?%ff=%ff", "/x?%ed%a0%80=1"])
async def test_a_target_of_any_bytes_is_answered(target: str) -> None:
    async with serving(echo) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(f"POST {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
        assert answer.startswith(("HTTP/1.1 404", "HTTP/1.1 400"))


async def test_a_body_that_does_not_come_keeps_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions begin with a body of someone who is not known yet."""
    monkeypatch.setattr(calls, "BODY_WITHIN", 0.05)
    async with serving(echo, max_in_flight=1) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        head = f"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: {JSON}\r\nContent-Length: 9\r\n\r\n"
        writer.write(head.encode() + b"{")
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        assert (await client.post("/x", json={})).status == 200
        writer.close()


async def stream(call: Call) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await answer.prepare(call.request)
    await answer.write(b": heartbeat\n\n")
    return answer


@pytest.mark.parametrize("handle", [echo, stream], ids=["answer", "stream"])
async def test_pages_of_named_origins_may_read_answers_and_streams(handle: Handle) -> None:
    async with serving(handle, cors_origins=(PAGE,)) as client:
        named = await client.post("/x", json={}, headers={"Origin": PAGE})
        other = await client.post("/x", json={}, headers={"Origin": "https://other.test"})
    assert (named.headers.get("Access-Control-Allow-Origin"), named.headers.get("Vary")) == (PAGE, "Origin")
    assert "Access-Control-Allow-Origin" not in other.headers
    assert "Access-Control-Allow-Credentials" not in named.headers


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("", False),
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, identity", False),
        ("notgzip", False),
    ],
)
async def test_an_answer_is_small_for_those_who_take_it_so_and_caches_know(accepted: str, takes: bool) -> None:
    body = {"a": "x" * 3000}
    async with serving(echo, cors_origins=(PAGE,)) as client:
        headers = {"Accept-Encoding": accepted, "Origin": PAGE}
        answer = await client.post("/x", json=body, headers=headers)
        page = await client.get("/page.js", headers={"Accept-Encoding": accepted})
        same = await client.get("/page.js", headers={"If-None-Match": page.headers["ETag"]})
        assert await answer.json() == body
    assert [each.headers.get("Content-Encoding") == "gzip" for each in (answer, page)] == [takes, takes]
    assert answer.headers["Vary"] == "Accept-Encoding, Origin"
    assert page.headers["Vary"] == same.headers["Vary"] == "Accept-Encoding"
    assert same.status == 304


async def test_pages_of_named_origins_may_read_the_headers_of_the_document() -> None:
    async with serving(echo, cors_origins=(PAGE,)) as client:
        answer = await client.post("/x", json={}, headers={"Origin": PAGE})
    exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
    assert {"ETag", "Location", "Idempotency-Replayed", "X-Managed-By"} <= {*exposed}


async def test_pages_of_named_origins_may_send_the_headers_of_the_document() -> None:
    asked = {"Access-Control-Request-Method": "GET"}
    async with serving(echo, cors_origins=(PAGE,)) as client:
        answer = await client.options("/x", headers={**asked, "Origin": PAGE})
        for other in ("https://other.test", "null", f"{PAGE}.other.test", PAGE.replace("https", "http")):
            refused = await client.options("/x", headers={**asked, "Origin": other})
            assert (refused.status, "Access-Control-Allow-Origin" in refused.headers) == (405, False), other
    allowed = answer.headers["Access-Control-Allow-Headers"].split(", ")
    assert answer.status == 204
    assert {"Authorization", "If-Match", "If-None-Match", "Last-Event-ID"} <= {*allowed}


@pytest.mark.parametrize("coding", ["", "gzip"])
async def test_head_has_the_headers_of_get_and_no_content(coding: str) -> None:
    async def read(call: Call) -> web.StreamResponse:
        return call.answer({"a": "x" * 3000}, headers={"ETag": '"1"'})

    names = ("Content-Type", "Content-Length", "Content-Encoding", "ETag", "Vary", "X-Content-Type-Options")
    async with serving(read, "GET") as client:
        headers = {"Accept-Encoding": coding}
        got, head = await client.get("/x", headers=headers), await client.head("/x", headers=headers)
        missing = await client.head("/y", headers=headers)
        page = await client.head("/page.js", headers=headers)
        assert [each.status for each in (got, head, missing, page)] == [200, 200, 404, 200]
        assert [head.headers.get(each) for each in names] == [got.headers.get(each) for each in names]
        assert await head.read() == await missing.read() == b""


async def test_head_opens_no_stream() -> None:
    streams = Streams(ABSENT, DynadminMetrics(CollectorRegistry()), total=1, of_a_user=1, heartbeat=1, recheck=60)

    async def watch(call: Call) -> web.StreamResponse:
        async with streams.opened(call, []):
            raise AssertionError

    async with server_of([route_of(watch, "GET", "/x", public=False)], Named()) as client:
        answer = await client.head("/x", headers={"Authorization": "Bearer mine"})
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        assert not {"Content-Length", "Transfer-Encoding"} & answer.headers.keys()
        assert await answer.read() == b""


async def test_head_is_where_get_has_no_effect() -> None:
    """A login has one: it begins a session."""
    login = dataclasses.replace(route_of(echo, "GET", "/login", public=True), by_browser=True)
    async with server_of([login, route_of(echo, "POST", "/x", public=True)]) as client:
        answers = [await client.head(each) for each in ("/login", "/x")]
    assert [(each.status, each.headers["Allow"]) for each in answers] == [(405, "GET"), (405, "POST")]


async def test_a_session_that_has_ended_can_be_ended() -> None:
    """The token is not verified: it may have expired, and the API server may be away."""
    sessions = Sessions(b"k" * 32, 60.0)
    _, ended = Sessions(b"k" * 32, 60.0, lambda: 0.0).begin("token", None)
    async with server_of(session(SessionPages(ABSENT, sessions, None)), sessions=sessions) as client:
        answer = await client.delete("/api/v1/session", headers={"Cookie": f"{COOKIE}={ended}"})
    assert answer.status == 204
    assert answer.headers["Set-Cookie"].startswith(f'{COOKIE}=""; ')
    assert "Max-Age=0" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize(
    ("accepted", "kind"), [("text/html,*/*;q=0.8", "text/html"), ("*/*", "application/problem+json")]
)
async def test_a_person_whose_login_fails_sees_a_page(accepted: str, kind: str) -> None:
    login, state, cookie = await login_begun()
    async with server_of(session(SessionPages(ABSENT, ABSENT, login))) as client:
        query = {"error": "access_denied", "error_description": "<script>no</script>", "state": state}
        headers = {"Accept": accepted, "Cookie": f"{LOGIN_COOKIE}={cookie}"}
        answer = await client.get("/api/v1/session/callback", params=query, headers=headers)
        text = await answer.text()
    assert (answer.status, answer.content_type) == (401, kind)
    assert "the issuer refuses the login: access_denied" in text
    if kind == "text/html":
        assert "<script>" not in text
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


async def test_only_the_answer_to_a_login_of_this_browser_is_shown() -> None:
    """A page of another site can send a browser here with any words, and they would stand on a page of this one."""
    login, state, cookie = await login_begun()
    async with server_of(session(SessionPages(ABSENT, ABSENT, login))) as client:
        for sent, kept in (({}, cookie), ({"state": "another"}, cookie), ({"state": state}, "")):
            query = {"error": "call", "error_description": "+1 555 0100", **sent}
            headers = {"Accept": "text/html", "Cookie": f"{LOGIN_COOKIE}={kept}"}
            answer = await client.get("/api/v1/session/callback", params=query, headers=headers)
            assert answer.status == 401
            assert "555" not in await answer.text()


async def login_begun() -> tuple[Logins, str, str]:
    """Logins, and the state and cookie of one that a browser has begun."""

    async def endpoints() -> Endpoints:
        return Endpoints("https://sso.test/authorize", "", "")

    back = f"{PAGE}/api/v1/session/callback"
    settings = Oidc(issuer="https://sso.test", audience="a", client_id="dynadmin", redirect_url=back)
    logins = Logins(settings, b"k" * 32, cast("Any", SimpleNamespace(endpoints=endpoints)), ABSENT)
    begun = await logins.begin("/")
    return logins, parse_qs(urlsplit(begun.url).query)["state"][0], begun.cookie


async def test_few_sessions_are_begun_at_once() -> None:
    """Each asks the API server whose token it is, for someone who is not known yet."""
    waiting, go = asyncio.Semaphore(0), asyncio.Event()

    class Slow:
        async def caller(self, _: str) -> Any:
            waiting.release()
            await go.wait()
            raise Unidentified("no")

    async with serving(SessionPages(cast("Any", Slow()), ABSENT, None).begin) as client:
        begun = [asyncio.create_task(client.post("/x", json={"token": "t"})) for _ in range(AT_ONCE_OF_ONE)]
        for _ in begun:
            await waiting.acquire()
        refused = await client.post("/x", json={"token": "t"})
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        go.set()
        assert {answer.status for answer in await asyncio.gather(*begun)} == {401}
        assert (await client.post("/x", json={"token": "t"})).status == 401


async def test_the_slow_bodies_of_strangers_leave_places_for_others() -> None:
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


@pytest.mark.parametrize(
    ("known", "status"),
    [
        (None, 200),
        ('"1"', 304),
        ('W/"1"', 304),
        ('"0", W/"1"', 304),
        ("*", 304),
        ('"2"', 200),
        ("1", 200),
    ],
)
async def test_a_version_that_the_caller_has_is_not_sent_again(known: str | None, status: int) -> None:
    async with serving(asking(Managed(), Writing(ABSENT).read, DEPLOYMENTS), "GET", "/{namespace}/{name}") as client:
        answer = await client.get("/n/a", headers={"If-None-Match": known} if known else {})
        assert (answer.status, answer.headers["ETag"]) == (status, '"1"')


@pytest.mark.parametrize(
    ("tags", "versions"),
    [
        (['"1"'], ["1"]),
        (['W/"1"'], ["1"]),
        (['"1", W/"2"', '"3"'], ["1", "2", "3"]),
        (["*"], []),
        (["1"], None),
        (['w/"1"'], None),
        (['"1,2"'], None),
    ],
    ids=str,
)
async def test_if_match_names_versions_also_where_a_proxy_weakened_them(
    tags: list[str], versions: list[str] | None
) -> None:
    async def read(call: Call) -> web.StreamResponse:
        return call.answer({"versions": call.if_match()})

    async with serving(read) as client:
        answer = await client.post("/x", headers=CIMultiDict(("If-Match", each) for each in tags))
        assert answer.status == (200 if versions is not None else 412)
        assert (await answer.json()).get("versions") == versions


async def test_every_answer_has_the_warnings_of_the_api_server() -> None:
    """One without content, and a refusal, too."""

    async def delete(call: Call) -> web.StreamResponse:
        call.warnings.append('299 - "old"')
        if call.flag("refused"):
            raise ProblemError("conflict", "no")
        return web.Response(status=204)

    route = dataclasses.replace(route_of(delete, "DELETE", "/x", public=True), query=(flag("refused", ""),))
    async with server_of([route]) as client:
        answers = [await client.delete(each) for each in ("/x", "/x?refused=true")]
    assert [(each.status, each.headers.getall("Warning")) for each in answers] == [
        (204, ['299 - "old"']),
        (409, ['299 - "old"']),
    ]


async def test_namespaces_that_are_left_out_are_warned_of() -> None:
    class Many:
        async def list_page(self, *_: Any, limit: int) -> dict[str, Any]:
            return {"metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a"}}]}

    class Reading:
        async def may(self, *_: Any) -> bool:
            return True

    cluster = Cluster(ABSENT, cast("Any", Reading()), ABSENT, "1")
    async with serving(asking(Many(), cluster.namespaces), "GET") as client:
        answer = await client.get("/x")
        assert await answer.json() == {"items": [{"name": "a"}]}
    assert answer.headers["Warning"] == '299 - "only the first 5000 namespaces are checked"'


class Managed:
    """An API server with one graph, which Argo CD applies."""

    async def get(self, *_: Any) -> dict[str, Any]:
        annotations = {"argocd.argoproj.io/tracking-id": "shop:x"}
        return {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1", "annotations": annotations}}


@pytest.mark.parametrize(("sent", "status"), [({"metadata": "x"}, 422), ({"metadata": None}, 409), ({"spec": 1}, 409)])
async def test_a_patch_of_any_shape_to_an_object_of_another_tool_is_refused(sent: Any, status: int) -> None:
    patch = asking(Managed(), Writing(ABSENT).patch, DEPLOYMENTS)
    async with serving(patch, "PATCH", "/{namespace}/{name}") as client:
        answer = await client.patch("/n/a", json=sent, headers={"Content-Type": MERGE_PATCH, "If-Match": "*"})
        assert answer.status == status


@pytest.mark.parametrize(
    ("kind", "sent", "pointers"),
    [
        (DEPLOYMENTS, {}, ["/metadata", "/spec/components"]),
        (MODELS, {}, ["/metadata", "/spec", "/spec/baseModelName", "/spec/modelName"]),
        (REQUESTS, {}, ["/metadata", "/spec", "/spec/model"]),
        (DEPLOYMENTS, {"metadata": {"name": "a", "namespace": "m"}}, ["/metadata/namespace", "/spec/components"]),
        (DEPLOYMENTS, {"metadata": 5, "spec": {"component": []}}, ["/metadata", "/spec/component", "/spec/components"]),
        (DEPLOYMENTS, {"metadata": {}, "spec": 1}, ["/metadata/name", "/spec"]),
        # What another kind lacks is not said.
        (DEPLOYMENTS, {"kind": "DynamoModel", "metadata": {}}, ["/kind"]),
    ],
)
async def test_an_object_is_refused_with_all_that_it_lacks(
    kind: Kind, sent: dict[str, Any], pointers: list[str]
) -> None:
    async with serving(asking(ABSENT, Writing(ABSENT).create, kind), path="/{namespace}") as client:
        refused = await (await client.post("/n", json=sent)).json()
        assert sorted(each["pointer"] for each in refused["errors"]) == pointers


class Busy:
    """An API server with one graph, which others change after each read, as often as it says."""

    def __init__(self, changes: int) -> None:
        self.changes, self.version = changes, 1

    async def get(self, *_: Any) -> dict[str, Any]:
        obj = {"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": str(self.version)}}
        self.changes -= 1
        self.version += self.changes >= 0
        return obj

    async def merge_patch(self, _resource: Any, _key: Any, patch: dict[str, Any], **_: Any) -> dict[str, Any]:
        if patch["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict(409, "Conflict", "the object has been modified")
        return patch


@pytest.mark.parametrize(
    ("match", "changes", "status"), [("*", 3, 200), ("*", 1000, 412), ('"1"', 1, 412), ('"1"', 0, 200)]
)
async def test_a_change_of_any_version_is_made_though_others_write_meanwhile(
    match: str, changes: int, status: int
) -> None:
    patch = asking(Busy(changes), Writing(ABSENT).patch, DEPLOYMENTS)
    async with serving(patch, "PATCH", "/{namespace}/{name}") as client:
        answer = await client.patch("/n/a", json={"spec": {}}, headers={"Content-Type": MERGE_PATCH, "If-Match": match})
        assert answer.status == status


class BusyForOperations(Busy):
    """The same for JSON patches, in the API server's own words: it does not say which operation failed."""

    async def json_patch(self, _resource: Any, _key: Any, operations: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        versions = [each["value"] for each in operations if each["path"] == "/metadata/resourceVersion"]
        if versions != [str(self.version)] or any(each["path"] == "/spec/absent" for each in operations):
            raise Invalid(422, "Invalid", "the server rejected our request due to an error in our request", {})
        return {"metadata": {"resourceVersion": str(self.version)}}


@pytest.mark.parametrize(
    ("match", "path", "changes", "status"),
    [
        ("*", "/spec/x", 3, 200),
        ("*", "/spec/x", 1000, 412),
        ('"1"', "/spec/x", 1, 412),
        ('"1"', "/spec/x", 0, 200),
        ('"1"', "/spec/absent", 0, 422),
        ("*", "/spec/absent", 0, 422),
    ],
)
async def test_operations_on_an_object_that_has_changed_are_of_another_version(
    match: str, path: str, changes: int, status: int
) -> None:
    patch = asking(BusyForOperations(changes), Writing(ABSENT).patch, DEPLOYMENTS)
    async with serving(patch, "PATCH", "/{namespace}/{name}") as client:
        headers = {"Content-Type": JSON_PATCH, "If-Match": match}
        answer = await client.patch("/n/a", json=[{"op": "remove", "path": path}], headers=headers)
        assert answer.status == status


class Refusing:
    """An API server of which admission refuses each patch."""

    def __init__(self) -> None:
        self.patches: list[list[dict[str, Any]]] = []

    async def json_patch(self, _resource: Any, _key: Any, operations: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        self.patches.append(operations)
        refusal = "admission webhook \"mutate\" denied the request: spec.restart.strategy.order[0]: 'x' is not there"
        raise Invalid(422, "Invalid", refusal)


async def test_a_restart_is_of_any_version_and_its_refusal_points_into_what_was_sent() -> None:
    kube = Refusing()
    async with serving(asking(kube, Actions(ABSENT, ABSENT).restart), path="/{namespace}/{name}") as client:
        sent = {"id": "1", "strategy": {"type": "Sequential", "order": ["x"]}}
        refused = await (await client.post("/n/a", json=sent)).json()
        assert kube.patches == [[{"op": "add", "path": "/spec/restart", "value": sent}]]
        assert [each["pointer"] for each in refused["errors"]] == ["/strategy/order/0"]


class Restarted:
    """An API server with one graph, which was restarted in an order before."""

    def __init__(self) -> None:
        strategy = {"type": "Sequential", "order": ["b", "a"]}
        self.graph: dict[str, Any] = {"spec": {"restart": {"id": "1", "strategy": strategy}}}

    async def merge_patch(self, _resource: Any, _key: Any, patch: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.graph = merged(self.graph, patch)
        return self.graph

    async def json_patch(self, _resource: Any, _key: Any, operations: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        for each in operations:
            _, top, field = each["path"].split("/")
            self.graph[top][field] = each["value"]
        return self.graph


@pytest.mark.parametrize("sent", [{"id": "2"}, {"id": "2", "strategy": {"type": "Parallel"}}])
async def test_a_restart_has_nothing_of_the_one_before(sent: dict[str, Any]) -> None:
    """Admission would refuse the order of the one before with type Parallel."""
    kube = Restarted()
    async with serving(asking(kube, Actions(ABSENT, ABSENT).restart), path="/{namespace}/{name}") as client:
        answer = await (await client.post("/n/a", json=sent)).json()
        assert answer["restart"] == kube.graph["spec"]["restart"] == sent


@pytest.mark.parametrize(
    ("sent", "pointer", "detail"),
    [
        ({"replicas": 1, "dry/Run": True}, "/dry~1Run", "no such field; there are replicas"),
        ({"replicas": 10**7}, "/replicas", "10000000 is too large; at most 150000"),
        ({"replicas": True}, "/replicas", "must be an integer, not true"),
    ],
)
async def test_a_scaling_that_is_not_understood_is_refused(sent: dict[str, Any], pointer: str, detail: str) -> None:
    async with serving(Actions(ABSENT, ABSENT).scale_adapter, path="/{namespace}/{name}") as client:
        refused = await (await client.post("/n/a", json=sent)).json()
        assert refused["errors"] == [{"pointer": pointer, "detail": detail}]


async def test_a_promotion_takes_its_parameters_from_the_query_alone() -> None:
    """A dry run that is asked for in the body must not deploy."""
    async with serving(Actions(ABSENT, ABSENT).promote, path="/{namespace}/{name}") as client:
        refused = await (await client.post("/n/a", json={"point": 1, "dryRun": True})).json()
        assert refused["errors"] == [{"pointer": "/dryRun", "detail": "no such field; there are point"}]


async def test_a_chat_that_is_not_understood_is_refused_in_our_words() -> None:
    chat = Chat(ABSENT, ABSENT, 1.0)
    async with serving(chat.chat, path="/{namespace}/{name}") as client:
        sent = {"messages": [{"role": "usr", "content": 5}], "maxTokens": 0, "x": 1}
        refused = await (await client.post("/n/a", json=sent)).json()
        assert {each["pointer"]: each["detail"] for each in refused["errors"]} == {
            "/messages/0/role": "'usr' is not allowed; one of 'system', 'user', 'assistant'",
            "/messages/0/content": "must be a string, not 5",
            "/maxTokens": "0 is too small; at least 1",
            "/x": "no such field; there are maxTokens, messages, model, parameters, seed, temperature",
        }


async def test_rights_of_a_stream_are_asked_for_again_also_where_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    async def check() -> None:
        asked.append(1)

    since, wall = time.monotonic(), time.time()
    opened = Stream(ABSENT, cast("Any", SimpleNamespace(request=None, caller=SimpleNamespace(expires=None))), check, 60)
    monkeypatch.setattr(time, "time", lambda: wall - 3600)
    monkeypatch.setattr(time, "monotonic", lambda: since + 61)
    assert opened.timeout(15) == 0.01
    await opened.keep()
    assert asked == [1]


async def test_an_issuer_that_does_not_answer_is_not_taken_for_the_api_server() -> None:
    async def login(_: Call) -> web.StreamResponse:
        raise IssuerUnavailable("the issuer answers 502")

    async with serving(login, "GET") as client:
        answer = await client.get("/x")
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        assert (await answer.json())["detail"] == "the issuer answers 502"


class Named:
    """Whose token it is, the token says; also a client with the rights of all."""

    def remembered(self, _: str) -> Caller | None:
        return None

    def is_of_cluster(self, _: str) -> bool:
        return True

    async def caller(self, token: str) -> Caller:
        return Caller(Identity(token))

    def for_identity(self, *_: Any, **__: Any) -> Any:
        return self


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

    metrics = DynadminMetrics(CollectorRegistry())
    access = cast("Any", SimpleNamespace(may=yes))
    streams = Streams(access, metrics, total=1, of_a_user=1, heartbeat=1, recheck=0)

    async def watch(call: Call) -> web.StreamResponse:
        async with streams.opened(call, [ResourceAttributes("watch", DEPLOYMENTS.resource, "a")]) as stream:
            for number in range(3):
                await stream.keep()
                await stream.send("MODIFIED", {"number": number})
        return stream.response

    async with server_of([route_of(watch, "GET", "/x", public=False)], Withdrawing(then)) as client:
        answer = await client.get("/x", headers={"Authorization": "Bearer mine"})
        lines = (await answer.text()).splitlines()
    assert [each.partition(": ")[2] for each in lines if each.startswith("event: ")] == ["MODIFIED", event]


async def test_readers_of_streams_that_end_together_come_back_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as all those of a replica that ends."""
    chances = iter((0.0, 0.5, 1.0))
    monkeypatch.setattr(random, "random", lambda: next(chances))
    streams = Streams(ABSENT, DynadminMetrics(CollectorRegistry()), total=1, of_a_user=1, heartbeat=1, recheck=60)

    async def watch(call: Call) -> web.StreamResponse:
        async with streams.opened(call, []) as stream:
            return stream.response

    async with server_of([route_of(watch, "GET", "/x", public=False)], Named()) as client:
        answers = [await client.get("/x", headers={"Authorization": "Bearer mine"}) for _ in range(3)]
        assert [await each.text() for each in answers] == [f"retry: {each}\n\n" for each in (1500, 2250, 3000)]


async def test_a_stream_that_begins_while_the_replica_ends_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(ABSENT, DynadminMetrics(CollectorRegistry()), total=1, of_a_user=1, heartbeat=1, recheck=60)
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
        answer = await client.get("/x", headers={"Authorization": "Bearer mine"})
        assert (await answer.text()).endswith('data: {"detail":"this replica ends; open the stream again"}\n\n')


async def test_where_too_much_waits_for_slow_readers_the_user_with_most_of_it_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """300 streams held 800 MiB, each an event of the size that etcd takes; whose line is slow loses nothing by them."""
    large = b"x" * (32 << 20)
    monkeypatch.setattr(connection, "UNSENT", 3 * len(large))
    streams = Streams(ABSENT, DynadminMetrics(CollectorRegistry()), total=9, of_a_user=9, heartbeat=1, recheck=60)
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
    named: Any = Named()
    server = HttpServer(
        routes,
        named,
        tokens=named,
        sessions=ABSENT,
        metrics=DynadminMetrics(CollectorRegistry()),
        settings=Dynadmin(),
    )

    class Connected(connection.HttpConnection):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            # What the kernel takes waits no longer, and that is not the same for each connection.
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
            super().connection_made(transport)

        def connection_lost(self, exc: BaseException | None) -> None:
            lost.append(self.user)
            super().connection_lost(exc)

    connected = partial(Connected, server.unreadable, connection.Connections(1000))
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


async def test_of_two_authorizations_none_counts() -> None:
    async with server_of([route_of(echo, "POST", "/x", public=False)], Named()) as client:
        both = CIMultiDict([("Authorization", "Bearer mine"), ("Authorization", "Bearer other")])
        refused = await client.post("/x", json={}, headers=both)
        assert (refused.status, (await refused.json())["detail"]) == (401, "one Authorization header is allowed, not 2")
        assert (await client.post("/x", json={}, headers={"Authorization": "Bearer mine"})).status == 200


async def test_the_slow_requests_of_one_caller_leave_places_for_others() -> None:
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


async def test_tokens_that_are_being_checked_leave_places_for_callers_who_are_known() -> None:
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

    async def ask(token: str) -> int:
        return (await client.get("/x", headers={"Authorization": f"Bearer {token}"})).status

    async with server_of([route_of(answered, "GET", "/x", public=False)], Slow(), max_in_flight=8) as client:
        begun = [asyncio.create_task(ask(f"made-up-{number}")) for number in range(8)]
        for _ in range(4):
            await waiting.acquire()
        assert (await ask("ann"), await ask("of the issuer")) == (200, 200)
        go.set()
        assert sorted(await asyncio.gather(*begun)) == [401] * 4 + [503] * 4
        assert await ask("made-up") == 401
