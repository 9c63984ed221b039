"""The client of the REST API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from dynamo_ctl import remote
from dynamo_ctl.commands.deploy import deployment
from dynamo_ctl.commands.events import by_api
from dynamo_ctl.commands.get.sources import OfApi
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.remote import Remote, RequestRefused, path_of
from dynamo_shared.runtime.endpoints import serving

from tests.unit.ctl.command_line import written

STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}


class Answering:
    """A session whose server gives the same response to every request."""

    content_type = "text/html"

    def __init__(self, content: bytes, status: int = 200) -> None:
        self.read = _returning(content)
        self.status = status

    @asynccontextmanager
    async def request(self, *_: object, **__: object) -> AsyncIterator[Answering]:
        """The answer."""
        yield self


def _returning(content: bytes) -> Any:
    async def read() -> bytes:
        return content

    return read


def api_of(answering: Answering) -> Remote:
    return Remote("https://p.test/", "token", cast(aiohttp.ClientSession, answering), namespace="team")


@asynccontextmanager
async def served(handler: Callable[[web.Request], Awaitable[web.StreamResponse]], token: Path) -> AsyncIterator[Remote]:
    """An API with one handler for all paths, called with the token of a file."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    async with (
        serving(application, "127.0.0.1", 0) as port,
        asyncio.timeout(60),
        Remote.open(f"http://127.0.0.1:{port}", token, namespace="team") as api,
    ):
        yield api


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda api: api.request("GET", "/namespaces"), "JSON"),
        (lambda api: anext(api.follow("/x")), "a stream of events"),
    ],
)
async def test_a_page_in_place_of_an_answer_is_reported(ask: Any, kind: str) -> None:
    """A wrong URL, or a proxy with a login page. A stream was reopened without end, and without a message."""
    with pytest.raises(CtlError) as refused:
        await ask(api_of(Answering(b"<html>log in</html>")))
    assert refused.value.code == ExitCode.UNREACHABLE
    assert str(refused.value) == f"https://p.test does not answer with {kind}: check that it is the platform's REST API"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (201, "DynamoGraphDeployment qwen created in namespace team"),
        (200, "DynamoGraphDeployment qwen exists unchanged (created before by request k1) in namespace team"),
    ],
)
async def test_a_deployment_of_an_earlier_request_is_not_reported_as_created(status: int, said: str) -> None:
    answer = {
        "unexpressed": [],
        "warnings": [],
        "object": {"kind": "DynamoGraphDeployment", "metadata": {"name": "qwen"}},
    }
    lines: list[str] = []
    api = api_of(Answering(json.dumps(answer).encode(), status))
    await deployment.deploy(api, {}, lines.append, remark=pytest.fail, dry_run="", as_json=False, key="k1")
    assert lines == [said]


@pytest.mark.parametrize("key", ["one\ntwo", "a b", "\N{ROCKET}", "x" * 129])
async def test_a_key_of_a_request_that_no_header_takes_is_named(key: str) -> None:
    """The error message was "does not answer with JSON"."""
    with pytest.raises(CtlError) as refused:
        await deployment.deploy(api_of(Answering(b"")), {}, print, remark=print, dry_run="", as_json=False, key=key)
    assert refused.value.code == ExitCode.USAGE
    assert str(refused.value) == "--request: use 1 to 128 printable ASCII characters without blanks"


async def test_an_interrupted_stream_is_resumed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A replica of the API is replaced, or a proxy has no other replica for a moment."""
    monkeypatch.setattr(remote, "RECONNECT_WITHIN", 0.0)
    asked: list[str] = []

    async def stream(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers.get("Last-Event-ID", ""))
        if len(asked) == 2:
            return web.Response(status=503, text="no one there")
        response = web.StreamResponse(headers=STREAM)
        await response.prepare(request)
        await response.write(f"id: {len(asked)}\nevent: event\ndata: {len(asked)}\n\n".encode())
        assert request.transport is not None
        if len(asked) == 1:
            await response.write(b'event: error\ndata: {"detail": "the API server does not answer"}\n\n')
        elif len(asked) < 4:
            await asyncio.sleep(0.01)
            request.transport.abort()
        else:
            await response.write(b'event: unauthorized\ndata: {"detail": "log in again"}\n\n')
        return response

    got: list[Any] = []
    async with served(stream, written(tmp_path, "token")) as api:

        async def read() -> None:
            async for event in api.follow("/namespaces/a/deployments?watch=true"):
                got.append(event.data)  # noqa: PERF401 - what came before the error counts

        with pytest.raises(CtlError, match="log in again"):
            await read()
    assert got == [1, 3, 4]
    assert asked == ["", "1", "1", "3"]


async def test_a_stream_continues_with_a_newer_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tokens in files, and those of cloud providers, last an hour or less: longer streams ended with an error."""
    monkeypatch.setattr(remote, "RECONNECT_WITHIN", 0.0)
    file, asked = written(tmp_path, "first"), list[str]()

    async def stream(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers["Authorization"])
        response = web.StreamResponse(headers=STREAM)
        await response.prepare(request)
        await response.write(f"id: 1\nevent: event\ndata: {len(asked)}\n\n".encode())
        file.write_text("second")
        await response.write(b'event: unauthorized\ndata: {"detail": "the token has expired; log in again"}\n\n')
        return response

    async with served(stream, file) as api:
        with pytest.raises(CtlError, match="log in again"):
            assert [event.data async for event in api.follow("/x")]
    assert asked == ["Bearer first", "Bearer second"]


async def test_an_event_that_is_not_json_is_reported() -> None:
    class Garbled(Answering):
        content_type = "text/event-stream"

        @property
        async def content(self) -> AsyncIterator[bytes]:
            for line in (b"event: log\n", b"data: {\n", b"\n"):
                yield line

    async with api_of(Garbled(b"")).stream("GET", "/x") as events:
        with pytest.raises(CtlError, match="an event that is not JSON"):
            await anext(events)


@pytest.mark.parametrize("errors", ["[1]", '[{"message": "no"}]', '[{"pointer": 1, "detail": "no"}]', '"no"'])
async def test_a_problem_of_another_api_is_shown_as_it_is(errors: str) -> None:
    """A gateway in between has another format of errors: the command ended with an internal error."""
    content = f'{{"title": "Busy", "detail": "wait", "errors": {errors}}}'
    with pytest.raises(RequestRefused) as refused:
        await api_of(Answering(content.encode(), 502)).request("GET", "/namespaces")
    assert str(refused.value) == f"the server answers 502: {content}"
    assert refused.value.code == ExitCode.UNREACHABLE


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("content", [b"<html>no upstream</html>", b'{"title": "Unavailable", "detail": "NATS"}'])
async def test_a_proxy_without_a_server_is_an_api_that_cannot_be_reached(status: int, content: bytes) -> None:
    """Scripts took it for a refusal, which a repetition does not change. A problem is an answer of the API itself."""
    with pytest.raises(RequestRefused) as refused:
        await api_of(Answering(content, status)).request("GET", "/namespaces")
    proxy = status != 500 and content.startswith(b"<")
    assert refused.value.code == (ExitCode.UNREACHABLE if proxy else ExitCode.FAILED)


@pytest.mark.parametrize(
    "content",
    [
        {"apiVersion": "v1", "kind": "NamespaceList", "metadata": {}, "items": [{"metadata": {"name": "a"}}]},
        {"items": {}},
        {"status": "ok"},
        {"items": ["a"]},
        ["a"],
        None,
    ],
)
async def test_json_of_another_api_is_reported(content: Any) -> None:
    """For example with the URL of the Kubernetes API server: it was an internal error."""
    with pytest.raises(CtlError) as refused:
        await OfApi(api_of(Answering(json.dumps(content).encode())))._namespaces("")
    assert refused.value.code == ExitCode.UNREACHABLE
    assert str(refused.value) == "https://p.test answers like another API: check that it is the platform's REST API"


async def test_errors_are_at_the_paths_of_fields() -> None:
    """The API has JSON pointers; dynamoctl prints paths."""
    pointers = ["/serving/replicas/0", "/engine/env/a~1b~0", "", "?limit"]
    problem = {"title": "no", "detail": "no", "errors": [{"pointer": each, "detail": "wrong"} for each in pointers]}
    with pytest.raises(RequestRefused) as refused:
        await api_of(Answering(json.dumps(problem).encode(), 422)).request("POST", "/x")
    assert str(refused.value).splitlines() == [
        "serving.replicas[0]: wrong",
        'engine.env["a/b~"]: wrong',
        "the whole: wrong",
        "?limit: wrong",
    ]


async def test_a_request_is_sent_again_with_a_newer_token_once(tmp_path: Path) -> None:
    """A chat may last longer than a token of a cloud provider: it ended after a quarter of an hour."""
    file, asked = written(tmp_path, "first"), list[str]()

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers["Authorization"])
        if request.headers["Authorization"] == "Bearer second":
            return web.json_response(await request.json())
        file.write_text("second" if request.path.endswith("/x") else "third")
        return web.json_response({"title": "no", "detail": "the token has expired"}, status=401)

    async with served(answer, file) as api:
        assert await api.request("POST", "/x", {"a": 1}) == {"a": 1}
        file.write_text("first")
        api._token = "first"
        with pytest.raises(CtlError, match="the token has expired"):
            await api.request("POST", "/y", {})
    assert asked == [f"Bearer {each}" for each in ("first", "second", "first", "third")]


@pytest.mark.parametrize("status", [403, 503])
async def test_a_stream_that_is_refused_at_first_is_an_error(status: int) -> None:
    with pytest.raises(CtlError, match=str(status)):
        await anext(api_of(Answering(b"no", status)).follow("/x"))


async def test_a_missing_object_is_reported_with_its_namespace() -> None:
    problem = {"title": "Not found", "detail": 'dynamographdeployments.nvidia.com "chat" not found'}
    api = api_of(Answering(json.dumps(problem).encode(), 404))
    with pytest.raises(CtlError) as refused:
        await api.request("GET", api.path("deployments", "chat", "logs", tail=1))
    assert str(refused.value) == (
        'Not found: dynamographdeployments.nvidia.com "chat" not found in namespace team; choose another namespace with -n'
    )


def test_a_path_keeps_a_parameter_that_is_zero() -> None:
    """`dynamoctl logs --tail 0 -f` shows only new lines."""
    assert path_of("n", "deployments", "a b", tail=0, all=False, component="", pod=None, follow=True) == (
        "/namespaces/n/deployments/a%20b?tail=0&follow=True"
    )


@pytest.mark.parametrize("items", [0, 1])
async def test_logs_of_which_none_can_be_read_are_an_error(items: int) -> None:
    """If some can be read, a remark names the others; here there are none."""
    row = {"pod": "g-0", "container": "main", "text": "hello"}
    answer = {"items": [row] * items, "problems": ["g-1/main: its node does not answer"]}
    api, out, remarks = api_of(Answering(json.dumps(answer).encode())), list[str](), list[str]()
    if items:
        await deployment.logs(api, "g", "", out.append, remark=remarks.append, follow=False, tail=9)
        assert (out, remarks) == (["g-0/main hello"], ["not read: g-1/main: its node does not answer"])
        return
    with pytest.raises(CtlError, match="not read: g-1/main: its node does not answer"):
        await deployment.logs(api, "g", "", out.append, remark=remarks.append, follow=False, tail=9)
    assert not out


async def test_events_are_all_that_the_api_has() -> None:
    """Without a limit the API returns only the last 200 events."""
    asked: list[str] = []

    class Recorded(Answering):
        @asynccontextmanager
        async def request(self, *given: object, **__: object) -> AsyncIterator[Answering]:
            asked.append(str(given[1]))
            yield self

    api = api_of(Recorded(b'{"items": []}'))
    await by_api.events(api, "DGD", "g", asked.append, since=None, follow=False, as_json=False)
    assert asked == ["https://p.test/api/v1/namespaces/team/deployments/g/events?limit=2000"]


async def test_without_a_token_the_error_names_the_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It does not name a cluster, because the caller requested the API."""
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv(remote.TOKEN, raising=False)
    with pytest.raises(CtlError) as refused:
        async with Remote.open("http://127.0.0.1:9", None):
            pass
    assert refused.value.code == ExitCode.USAGE
    assert str(refused.value).startswith("no token for the API: set $DYNAMO_TOKEN or --token-file")


@pytest.mark.parametrize("server", ["http://[::1", "http://localhost:99999", "localhost:8082", "http://a@127.0.0.1"])
async def test_a_text_that_is_not_the_url_of_a_server_is_refused(server: str) -> None:
    with pytest.raises(CtlError, match=r"write https://host or http://127.0.0.1:8082$") as refused:
        async with Remote.open(server, None):
            pass
    assert refused.value.code == ExitCode.USAGE
    assert not remote.same_local(server, "http://localhost:1")


@pytest.mark.parametrize("content", [b"", b"two\nlines", b"\xff\xfe"])
async def test_a_file_without_a_token_is_named(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(CtlError) as refused:
        async with Remote.open("http://127.0.0.1:9", file):
            pass
    assert str(refused.value) == f"{file}: is not a bearer token, which is one line of ASCII characters"


async def test_the_patch_is_printed_if_another_tool_manages_the_object() -> None:
    """The error message says to commit it."""
    problem = {"title": "Another tool manages this object", "detail": "commit the patch", "patch": {"spec": {"a": 1}}}
    with pytest.raises(CtlError) as refused:
        await api_of(Answering(json.dumps(problem).encode(), 409)).request("POST", "/x")
    assert str(refused.value).splitlines() == [
        "Another tool manages this object: commit the patch",
        'the patch: {"spec": {"a": 1}}',
    ]


def test_a_manifest_in_place_of_an_intent_is_named(tmp_path: Path) -> None:
    """Users expect `-f FILE` to work like kubectl's."""
    file = written(
        tmp_path, "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata: {name: a}\nspec: {}\n"
    )
    with pytest.raises(CtlError) as refused:
        deployment.intent_of(file)
    assert "is a manifest of kind DynamoGraphDeployment, not an intent (docs/dynadmin.md); kubectl apply -f " in str(
        refused.value
    )
    assert f"kubectl apply -f {file}" in str(refused.value)
