"""A client of the REST API for commands: requests with the caller's token, errors as messages, event streams."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import aiohttp
import structlog
from dynamo_shared.aio import spread
from dynamo_shared.api import field_errors
from dynamo_shared.kube import ConfigError, config
from dynamo_shared.kube.reviews import plausible
from dynamo_shared.kube.transport import connection_words

from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.targets import USUAL, ClusterOptions

#: Time-out of an answer that is not a stream. Seconds.
ANSWER_WITHIN = 60.0
#: Longest pause before a stream that ended is reopened. Seconds.
RECONNECT_WITHIN = 3.0
SERVER, TOKEN = "DYNAMO_SERVER_URL", "DYNAMO_TOKEN"
#: Kind on the command line -> collection of the API.
COLLECTIONS = {"dgd": "deployments", "dcd": "components", "dgdr": "requests"}
_STREAM = "text/event-stream"
log = structlog.get_logger("dynamo.ctl")

_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


def same_local(one: str, other: str) -> bool:
    """Whether two URLs are the same server on this machine."""
    try:
        addresses = [urlsplit(one), urlsplit(other)]
        ports = {each.port for each in addresses}
    except ValueError:
        return False
    return len(ports) == 1 and all(each.hostname in _LOCAL for each in addresses)


class RequestRefused(CtlError):
    """The server refused a request with an HTTP status. The message has every reason."""

    def __init__(self, status: int, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message, code)
        self.status = status


class RemoteAnswer(NamedTuple):
    """A successful answer: its HTTP status and its content."""

    status: int
    content: Any


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """A server-sent event."""

    name: str
    data: Any
    id: str = ""


class Remote:
    """A connection to one API server of the platform."""

    def __init__(
        self,
        url: str,
        token: str,
        session: aiohttp.ClientSession,
        renew: Callable[[], Awaitable[str]] | None = None,
        cluster: ClusterOptions = USUAL,
        *,
        namespace: str | None = None,
    ) -> None:
        """`renew` returns the current token, for work that lasts longer than the first token. `cluster`: the cluster
        of the kubeconfig. `namespace`: that of the command's `-n`.
        """
        self._url = url.rstrip("/")
        self._token = token
        self._session = session
        self._renew = renew
        self._cluster = cluster
        self._namespace = namespace

    @cached_property
    def namespace(self) -> str:
        """The namespace of the command: that of `-n`, otherwise of the kubeconfig. Raises ConfigError."""
        return self._namespace or self._cluster.namespace()

    def path(self, *parts: str, **query: Any) -> str:
        """A path of the API below the command's namespace. Raises ConfigError."""
        return path_of(self.namespace, *parts, **query)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, server: str, token_file: Path | None, cluster: ClusterOptions = USUAL, namespace: str | None = None
    ) -> AsyncIterator[Self]:
        """The API at a URL. The token comes from the file, $DYNAMO_TOKEN or the cluster's kubeconfig. Raises CtlError
        without one.
        """
        address = _address(server)
        if address.scheme == "http" and address.hostname not in _LOCAL:
            raise CtlError(f"--server {server}: tokens are sent to other machines only over https", ExitCode.USAGE)
        token = await _token(token_file, cluster)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            yield cls(server, token, session, partial(_token, token_file, cluster), cluster, namespace=namespace)

    async def request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request; returns the answer's JSON. Raises RequestRefused with every reason; CtlError without an
        answer.
        """
        return (await self.answer(method, path, body, **headers)).content

    async def answer(self, method: str, path: str, body: Any = None, **headers: str) -> RemoteAnswer:
        """Like `request`, with the HTTP status, for requests with several kinds of success."""
        try:
            async with self._sent(method, path, body, headers, aiohttp.ClientTimeout(total=ANSWER_WITHIN)) as response:
                content = await response.read()
                return RemoteAnswer(response.status, json.loads(content) if content else None)
        except ValueError as error:
            raise CtlError(
                f"{self._url} does not answer with JSON: check that it is the platform's REST API", ExitCode.UNREACHABLE
            ) from error

    async def listed(self, path: str, *fields: str) -> dict[str, Any]:
        """Read a list whose items have these fields. Errors like `request`; CtlError if another API answers."""
        content = await self.request("GET", path)
        answer: dict[str, Any] = content if isinstance(content, dict) else {}
        items = answer.get("items")
        if isinstance(items, list) and all(isinstance(each, dict) and {*fields} <= each.keys() for each in items):
            return answer
        raise CtlError(
            f"{self._url} answers like another API: check that it is the platform's REST API", ExitCode.UNREACHABLE
        )

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> AsyncIterator[AsyncIterator[ServerSentEvent]]:
        """Open a stream of events. Raises RequestRefused with every reason; CtlError if no answer comes."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_WITHIN, sock_read=ANSWER_WITHIN)
        async with self._sent(method, path, body, {**headers, "Accept": _STREAM}, timeout) as response:
            if response.content_type != _STREAM:
                # Otherwise `follow` would repeat the request without end.
                raise CtlError(
                    f"{self._url} does not answer with a stream of events: check that it is the platform's REST API",
                    ExitCode.UNREACHABLE,
                )
            yield _events(response)

    async def follow(self, path: str) -> AsyncGenerator[ServerSentEvent]:
        """Yields the events of a stream. Reopens it after each end, from the last event on. Raises CtlError for a
        refusal.

        A server that cannot be reached is an error only before the first connection: later, its replicas may be
        restarting. An expired token is an error only if there is no newer token.
        """
        last, opened = "", False
        while True:
            try:
                async with self.stream("GET", path, **({"Last_Event_ID": last} if last else {})) as events:
                    opened = True
                    async for event in events:
                        _raise_for(event)
                        last = "" if event.name == "resync" else event.id or last
                        yield event
            except CtlError as error:
                if not (opened and (_is_temporary(error) or await self._has_newer_token(error))):
                    raise
                log.warning("stream interrupted; reconnecting", error=str(error))
            await asyncio.sleep(spread(RECONNECT_WITHIN))

    async def _has_newer_token(self, error: CtlError) -> bool:
        """Whether there is a newer token than the refused one, which it then uses. Raises CtlError without a token."""
        return isinstance(error, RequestRefused) and error.status == 401 and await self._renewed()

    async def _renewed(self) -> bool:
        """Read the current token. Returns whether it changed. Raises CtlError if there is no token."""
        if self._renew is None:
            return False
        before, self._token = self._token, await self._renew()
        return self._token != before

    @asynccontextmanager
    async def _sent(
        self, method: str, path: str, body: Any, headers: Mapping[str, str], timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; yields the successful response. Errors like `request`, also while the response is read.

        If the token has expired, a newer token is used: a chat may last longer than a token.
        """
        given = {name.replace("_", "-"): value for name, value in headers.items()}

        async def request(stack: AsyncExitStack) -> aiohttp.ClientResponse:
            return await stack.enter_async_context(
                self._session.request(
                    method,
                    f"{self._url}/api/v1{path}",
                    json=body,
                    headers={"Authorization": f"Bearer {self._token}", **given},
                    timeout=timeout,
                    allow_redirects=False,
                    # A line of a stream has a whole object.
                    read_bufsize=1 << 22,
                )
            )

        try:
            async with AsyncExitStack() as stack:
                response = await request(stack)
                if response.status == 401 and await self._renewed():
                    response = await request(stack)
                if response.status >= 300:
                    raise _problem(response.status, await response.read(), path)
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise CtlError(f"{self._url} does not answer: {connection_words(error)}", ExitCode.UNREACHABLE) from error


def _address(server: str) -> SplitResult:
    """The parts of a server's URL. Raises CtlError for any other URL."""
    with suppress(ValueError):
        address = urlsplit(server)
        # Reading `port` raises an error if it is invalid.
        if address.scheme in ("http", "https") and address.hostname and not address.username and address.port != 0:
            return address
    raise CtlError(f"--server {server}: write https://host or http://127.0.0.1:8082", ExitCode.USAGE)


def _is_temporary(error: CtlError) -> bool:
    """Whether the same request may succeed later: there was no response, or one with a temporary status."""
    return error.code is ExitCode.UNREACHABLE or (
        isinstance(error, RequestRefused) and error.status in (429, 502, 503, 504)
    )


def path_of(namespace: str, *parts: str, **query: Any) -> str:
    """A path of the API below a namespace. Parameters that are None, False or empty are omitted, but not 0."""
    path = "/".join(quote(each, safe="") for each in ("namespaces", namespace, *parts))
    given = {name: str(value) for name, value in query.items() if value not in (None, "") and value is not False}
    return f"/{path}?{urlencode(given)}" if given else f"/{path}"


def field_error(pointer: str, detail: str) -> str:
    """An error at a field. The REST API names the field by a pointer (RFC 6901); the result has its path in a manifest.

    A query parameter such as `?limit` stays unchanged.
    """
    root, *parts = (each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/"))
    path = field_errors.path_of(tuple(int(each) if each.isdecimal() else each for each in parts))
    return f"{root or path or 'the whole'}: {detail}"


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[ServerSentEvent]:
    """Yields the events of an answer. Raises CtlError for an event that cannot be read."""
    name, data, identity = "", "", ""
    async for raw in response.content:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            data += value
        elif field == "id":
            identity = value
        elif not line:
            if name:
                yield ServerSentEvent(name, _data(data), identity)
            name, data, identity = "", "", ""


def _raise_for(event: ServerSentEvent) -> None:
    """Raises RequestRefused if the token has expired; CtlError for a temporary error, such as a restarting API server."""
    if event.name == "unauthorized":
        raise RequestRefused(401, str(event.data["detail"]))
    if event.name == "error":
        raise CtlError(str(event.data["detail"]), ExitCode.UNREACHABLE)


def _data(text: str) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError as error:
        raise CtlError("the stream has an event that is not JSON", ExitCode.UNREACHABLE) from error


def _problem(status: int, content: bytes, path: str) -> RequestRefused:
    try:
        problem = json.loads(content)
        title, detail = str(problem["title"]), str(problem["detail"])
        errors = [field_error(each["pointer"], str(each["detail"])) for each in problem.get("errors") or ()]
    except (ValueError, KeyError, TypeError, AttributeError):
        # A proxy in front of the REST API has no server for the request. The API itself answers with a problem.
        code = ExitCode.UNREACHABLE if status in (502, 503, 504) else ExitCode.FAILED
        return RequestRefused(status, f"the server answers {status}: {content[:200].decode('utf-8', 'replace')}", code)
    if status == HTTPStatus.NOT_FOUND and path.startswith("/namespaces/"):
        # The most frequent cause is another namespace, which the API does not name.
        detail += f" in namespace {path.split('/')[2]}; choose another namespace with -n"
    # If another tool manages the object, the user applies this patch in that tool's repository.
    patch = [f"the patch: {json.dumps(problem['patch'])}"] if problem.get("patch") else []
    return RequestRefused(status, "\n".join([*(errors or [f"{title}: {detail}"]), *patch]))


async def _token(file: Path | None, cluster: ClusterOptions) -> str:
    source, token = f"${TOKEN}", os.environ.get(TOKEN, "").strip()
    if file is not None:
        try:
            source, token = str(file), (await asyncio.to_thread(file.read_text, errors="replace")).strip()
        except OSError as error:
            raise CtlError(f"{file}: cannot be read: {error.strerror or error}", ExitCode.USAGE) from error
    if plausible(token):
        return token
    if token or file is not None:
        raise CtlError(f"{source}: is not a bearer token, which is one line of ASCII characters", ExitCode.USAGE)
    try:
        credentials = (await config.load(cluster.kubeconfig, cluster.context)).credentials
    except ConfigError as error:
        raise CtlError(
            f"no token for the API: set ${TOKEN} or --token-file; the kubeconfig has no token to use: {error}",
            ExitCode.USAGE,
        ) from error
    if credentials.stale():
        await credentials.refresh(force=False)
    scheme, _, token = (credentials.authorization or "").partition(" ")
    if scheme != "Bearer" or not token:
        raise CtlError(
            f"the kubeconfig has no bearer token (certificates are not sent to the API): set ${TOKEN}, or --token-file, "
            "for example with the output of `kubectl create token NAME`",
            ExitCode.USAGE,
        )
    return token
