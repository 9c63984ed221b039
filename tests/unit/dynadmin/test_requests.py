"""Requests as they arrive over HTTP, up to what handlers get, and the heads of answers."""

import asyncio
import dataclasses
import threading
from typing import Any, cast

import pytest
from aiohttp import web
from dynamo_dynadmin.api import details, object_writer
from dynamo_dynadmin.api.cluster import Cluster
from dynamo_dynadmin.api.details import Details
from dynamo_dynadmin.api.intent_deployer import IntentDeployer
from dynamo_dynadmin.api.kinds import DEPLOYMENTS
from dynamo_dynadmin.api.object_writer import ObjectWriter
from dynamo_dynadmin.deploy import PlatformDefaults
from dynamo_dynadmin.http import call as calls
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.compression import Precompressed
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.http.routes import JSON, YAML, Parameter, choice, flag
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.untrusted.yaml_text import documents
from dynamo_shared.api.yaml_output import to_yaml
from multidict import CIMultiDict

from .http_world import (
    ABSENT,
    KNOWN,
    PAGE,
    Handle,
    Managed,
    Named,
    asking,
    echo,
    route_of,
    server_of,
    serving,
    streams_of,
)


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
async def test_a_body_that_is_not_json_or_cannot_be_forwarded_is_refused(body: bytes) -> None:
    async with serving(echo) as client:
        answer = await client.post("/x", data=body, headers={"Content-Type": JSON})
        assert (answer.status, (await answer.json())["type"]) == (400, "urn:dynamo:problem:bad-request")


@pytest.mark.parametrize(("size", "apart"), [(100, False), (1 << 17, True)], ids=["small", "large"])
async def test_what_a_large_body_says_is_read_and_checked_while_others_are_answered(
    monkeypatch: pytest.MonkeyPatch, size: int, apart: bool
) -> None:
    threads: list[int] = []

    def noting(work: Any) -> Any:
        def noted(*arguments: Any) -> Any:
            threads.append(threading.get_ident())
            return work(*arguments)

        return noted

    monkeypatch.setattr(calls, "documents", noting(documents))
    monkeypatch.setattr(object_writer, "schema_errors", noting(schema_errors))
    create = asking(ABSENT, ObjectWriter(ABSENT).create, DEPLOYMENTS)
    async with serving(create, path="/{namespace}") as client:
        answer = await client.post("/n", data=f"spec: {'a' * size}", headers={"Content-Type": YAML})
        assert answer.status == 422
    assert {each != threading.get_ident() for each in threads} == {apart}


@pytest.mark.parametrize(("size", "apart"), [(100, False), (1 << 16, True)], ids=["small", "large"])
async def test_what_a_large_intent_becomes_is_planned_while_others_are_answered(size: int, apart: bool) -> None:
    threads: list[int] = []

    def planned(_: Any) -> Any:
        threads.append(threading.get_ident())
        raise ProblemError("conflict", "planned")

    deployer = IntentDeployer(ABSENT, ABSENT, PlatformDefaults("r", "1.5.0", ""), planned)
    intent = {"mode": "graph", "name": "a", "backend": "vllm", "model": {"name": "m"}, "engine": {"args": ["a" * size]}}
    async with serving(deployer.deploy, path="/{namespace}") as client:
        assert (await client.post("/n", json=intent)).status == 409
    assert {each != threading.get_ident() for each in threads} == {apart}


@pytest.mark.parametrize(("size", "apart"), [(100, False), (1 << 16, True)], ids=["small", "large"])
async def test_a_large_object_becomes_yaml_while_others_are_answered(
    monkeypatch: pytest.MonkeyPatch, size: int, apart: bool
) -> None:
    """A megabyte took a second, and its owner may read it again and again."""
    threads: list[int] = []

    class Large(Managed):
        async def get(self, *_: Any) -> dict[str, Any]:
            return {**await super().get(), "spec": "x" * size}

    def noted(obj: Any) -> str:
        threads.append(threading.get_ident())
        return to_yaml(obj)

    monkeypatch.setattr(details, "to_yaml", noted)
    read = asking(Large(), Details(ABSENT, ABSENT).manifest, DEPLOYMENTS)
    route = dataclasses.replace(route_of(read, "GET", "/{namespace}/{name}", public=True), lenient=True)
    async with server_of([route]) as client:
        answer = await client.get("/n/a?format=yaml")
        assert "spec: xxx" in await answer.text()
    assert {each != threading.get_ident() for each in threads} == {apart}


async def test_json_bodies_arrive_unchanged() -> None:
    body = {"a": [1, -1.5, True, None, "\u00e4\U0001f600", 10**30], "b": {}}
    async with serving(echo) as client:
        assert await (await client.post("/x", json=body)).json() == body


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"spec": [{"replicas": 1, "replicas": 3}]}', "the body is not valid: the key 'replicas' is set twice"),
        (b"  ", "the body is empty"),
        (b"[]" + b" " * 1024, "the body has more than 1024 bytes, the limit"),
    ],
    ids=["twice", "empty", "long"],
)
async def test_a_refusal_of_a_body_says_what_is_wrong(body: bytes, detail: str) -> None:
    async with serving(echo, max_body_bytes=1024) as client:
        answer = await client.post("/x", data=body, headers={"Content-Type": JSON})
        assert (await answer.json())["detail"] == detail


async def test_a_body_with_a_wrong_content_encoding_is_refused() -> None:
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


async def test_a_body_that_does_not_arrive_in_time_frees_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
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
        others = [await client.post("/x", json={}, headers=each) for each in ({"Origin": "https://other.test"}, {})]
    assert named.headers.get("Access-Control-Allow-Origin") == PAGE
    # A cache between must not give the answer for one origin, or for none, to a page of another.
    assert [each.headers.get("Vary") for each in (named, *others)] == ["Origin"] * 3
    assert all("Access-Control-Allow-Origin" not in each.headers for each in others)
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
async def test_answers_are_compressed_for_clients_that_accept_it_and_vary_says_so(accepted: str, takes: bool) -> None:
    body = {"a": "x" * 3000}
    async with serving(echo, cors_origins=(PAGE,)) as client:
        headers = {"Accept-Encoding": accepted, "Origin": PAGE}
        answer = await client.post("/x", json=body, headers=headers)
        page = await client.get("/page.js", headers={"Accept-Encoding": accepted})
        same = await client.get("/page.js", headers={"If-None-Match": page.headers["ETag"]})
        assert await answer.json() == body
    assert [each.headers.get("Content-Encoding") == "gzip" for each in (answer, page)] == [takes, takes]
    assert answer.headers["Vary"] == "Accept-Encoding, Origin"
    assert page.headers["Vary"] == same.headers["Vary"] == "Accept-Encoding, Origin"
    assert same.status == 304


@pytest.mark.parametrize("accepted", ["", "gzip"])
async def test_vary_names_a_header_once(accepted: str) -> None:
    """JSON that is compressed once in advance, such as the OpenAPI document, named it twice for clients without gzip."""
    constant = Precompressed(b'{"a": "%s"}' % (b"x" * 3000))

    async def read(call: Call) -> web.StreamResponse:
        return constant.answer(call.request, JSON)

    async with serving(read, "GET") as client:
        answer = await client.get("/x", headers={"Accept-Encoding": accepted})
    assert answer.headers["Vary"] == "Accept-Encoding"


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
    streams = streams_of()

    async def watch(call: Call) -> web.StreamResponse:
        async with streams.opened(call, []):
            raise AssertionError

    async with server_of([route_of(watch, "GET", "/x", public=False)], Named()) as client:
        answer = await client.head("/x", headers=KNOWN)
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        assert not {"Content-Length", "Transfer-Encoding"} & answer.headers.keys()
        assert await answer.read() == b""


async def test_head_is_allowed_where_get_has_no_effect() -> None:
    """A login has one: it begins a session."""
    login = dataclasses.replace(route_of(echo, "GET", "/login", public=True), by_browser=True)
    async with server_of([login, route_of(echo, "POST", "/x", public=True)]) as client:
        answers = [await client.head(each) for each in ("/login", "/x")]
    assert [(each.status, each.headers["Allow"]) for each in answers] == [(405, "GET"), (405, "POST")]


@pytest.mark.parametrize(
    ("known", "status"),
    [(None, 200), ('"1"', 304), ('W/"1"', 304), ('"0", W/"1"', 304), ("*", 304), ('"2"', 200), ("1", 200)],
)
async def test_a_version_that_the_caller_has_is_not_sent_again(known: str | None, status: int) -> None:
    async with serving(
        asking(Managed(), ObjectWriter(ABSENT).read, DEPLOYMENTS), "GET", "/{namespace}/{name}"
    ) as client:
        answer = await client.get("/n/a", headers={"If-None-Match": known} if known else {})
        assert (answer.status, answer.headers["ETag"]) == (status, '"1"')


async def test_every_answer_has_the_warnings_of_the_api_server() -> None:
    """One without content, and a refusal, too."""

    async def delete(call: Call) -> web.StreamResponse:
        call.warnings.append("old")
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
        async def list_names(self, *_: Any, limit: int) -> tuple[list[str], bool]:
            return ["a"], True

    class Reading:
        async def where(self, _: Any, __: Any, names: set[str]) -> list[str]:
            return sorted(names)

    cluster = Cluster(ABSENT, cast("Any", Reading()), ABSENT, "1")
    async with serving(asking(Many(), cluster.namespaces), "GET") as client:
        answer = await client.get("/x")
        assert await answer.json() == {"items": [{"name": "a"}]}
    assert answer.headers["Warning"] == '299 - "only the first 5000 namespaces are checked"'


async def test_two_authorization_headers_are_refused() -> None:
    async with server_of([route_of(echo, "POST", "/x", public=False)], Named()) as client:
        both = CIMultiDict([("Authorization", "Bearer mine"), ("Authorization", "Bearer other")])
        refused = await client.post("/x", json={}, headers=both)
        assert (refused.status, (await refused.json())["detail"]) == (401, "one Authorization header is allowed, not 2")
        assert (await client.post("/x", json={}, headers=KNOWN)).status == 200


QUERY = (flag("a", ""), flag("b", ""), choice("d", "", "x", "y"), Parameter("e", ""))


async def test_each_parameter_is_given_once_and_what_is_wrong_with_it_is_said_once() -> None:
    route = dataclasses.replace(route_of(echo, "GET", "/x", public=True), query=QUERY)
    async with server_of([route]) as client:
        problem = await (await client.get(f"/x?a=true&a=5&b=5&c=1&c=2&d=z&e={'z' * 4097}")).json()
    assert problem["errors"] == [
        {"pointer": "?a", "detail": "set more than once"},
        {"pointer": "?b", "detail": "must be true or false"},
        {"pointer": "?c", "detail": "unknown parameter; allowed: a, b, d, e"},
        {"pointer": "?d", "detail": "must be one of x, y"},
        {"pointer": "?e", "detail": "must have at most 4096 characters"},
    ]
    assert problem["detail"].count("unknown parameter") == 1
