"""HTTP to one API server: connection reuse, credentials, timeouts, retries, bounded answers, errors.

It does not know objects. It is built for many small requests: the URL is assembled as a string and never parsed twice,
bodies are bytes, and tracing costs nothing unless a recording span is current.
"""

import asyncio
import re
import socket
import ssl
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Final

import aiohttp
from aiohttp import AddrInfoType
from aiohttp.connector import Connection as HttpConnection
from multidict import CIMultiDict
from opentelemetry import trace
from opentelemetry.trace import SpanKind
from yarl import URL

from dynamo_shared.aio import Randomness, delay
from dynamo_shared.kube import errors
from dynamo_shared.kube.config import Connection
from dynamo_shared.kube.warning_header import text_of

# One process uses one API server: more connections than this would only queue there (max-requests-inflight 400, mutating 200).
CONNECTIONS: Final = 64
# Watches hold a connection for minutes: they must not take a connection from a write, nor wait for another watch to
# end. There are as many as reflectors; 0: no limit.
WATCH_CONNECTIONS: Final = 0
# etcd refuses objects above 1.5 MiB; a page of 500 large pods stays below this limit, a mistake in a selector does not.
MAX_RESPONSE_BYTES: Final = 64 * 2**20
# Name resolution, TCP and TLS together.
CONNECT_SECONDS: Final = 10.0
# This client closes idle connections first: the API server's idle timeout is 3 minutes.
KEEPALIVE_SECONDS: Final = 90.0
# A peer may disappear silently (a node without power, a gateway that dropped the connection). A connection ends if data
# is not confirmed for 15 seconds, or at the second probe after 30 idle seconds: pooled connections before each blocks a
# request for its whole timeout, and watches before their silence limit. In the system's units; not every system has all
# of these options.
PROBES: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_USER_TIMEOUT": 15_000}
# asyncio allocates a buffer of 256 KiB for each TLS connection, fully resident from the start; a watcher has seventy
# connections. A TLS record has 16 KiB.
TLS_BUFFER_BYTES: Final = 32 * 2**10
SSLProtocol.max_size = TLS_BUFFER_BYTES
# If a reader is slow, the output of pods waits in the socket, in TLS and in aiohttp: three megabytes per answer without
# these limits, three hundred kilobytes with them.
ANSWER_BUFFER_BYTES: Final = 2**18
SMALL_BUFFER_BYTES: Final = 2**14

USER_AGENT: Final = f"dynamo-platform/{version('dynamo-shared')}"

# Retries: 0.1, 0.2, 0.4, 0.8 s on average, within the overall time-out.
ATTEMPTS: Final = 5
_FIRST_BACKOFF_SECONDS: Final = 0.1
_MAX_BACKOFF_SECONDS: Final = 5.0

# aiohttp's description of the TLS settings of a connection that it cannot open.
_TLS_SETTINGS: Final = re.compile(r" ssl:(?:<[^>]*>|\w+)(?= \[)")
_URL_PATHS: Final = re.compile(r"(https?://[^/\s]+)/\S*")
# Failures without an answer: the connection broke or was refused, or the answer was cut off.
_NETWORK_FAILURES = (aiohttp.ClientError, OSError)

# Called after each request: method, path without query, HTTP status (0: none), seconds.
RequestObserver = Callable[[str, str, int, float], None]
# Called before a request is sent again, with the preceding failure.
RetryObserver = Callable[[errors.KubeError], None]
# Called with the text of each warning in an answer.
WarningObserver = Callable[[str], None]


def _always() -> bool:
    return True


_may_write: ContextVar[Callable[[], bool]] = ContextVar("may_write", default=_always)
"""`may_write` of the request that a task is making; aiohttp has no other way to pass it to the moment of sending."""


class _GuardedRequest(aiohttp.ClientRequest):
    """Refuses, last of all, a request that must not be sent: the process may have been stopped while it waited to connect."""

    async def send(self, conn: HttpConnection) -> aiohttp.ClientResponse:
        if self.method != "GET" and not _may_write.get()():
            reason = "this replica no longer owns the object's partition"
            raise errors.NotHeld(0, "NotHeld", reason, request=f"{self.method} {self.url.raw_path}")
        return await super().send(conn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A request to the API server. `path` and `query` are already percent-encoded."""

    method: str
    path: str
    query: str = ""
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = ""
    retry: bool = False
    """whether it may safely arrive twice: it is repeated after connection failures, 429 and 503"""
    agent: str = USER_AGENT
    headers: tuple[tuple[str, str], ...] = ()
    warned: WarningObserver | None = None
    """receives the server's warnings"""
    small_buffers: bool = False
    """whether to buffer little of a streamed answer: many are open at a time, from servers that are not trusted"""
    prompt: bool = False
    """whether a streamed answer begins at once, so that the client's timeout also limits the wait for its beginning"""
    most: int | None = None
    """limit of an answer in bytes; the rest is not read (ResponseTooLarge); None: the client's limit"""
    may_write: Callable[[], bool] = _always
    """called right before each sending of a request other than GET: if False, the request is not sent (NotHeld)"""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def sent_headers(self) -> CIMultiDict[str]:
        """The headers without credentials."""
        headers: CIMultiDict[str] = CIMultiDict(self.headers)
        headers["User-Agent"] = self.agent
        if self.body is not None:
            headers["Content-Type"] = self.content_type
        if self.accept:
            headers["Accept"] = self.accept
        return headers


class Transport:
    """The HTTP side of a KubeClient. Opened inside a running loop; closed once, by the client that opened it."""

    def __init__(
        self,
        connection: Connection,
        *,
        timeout: float,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        observer: RequestObserver | None = None,
        on_retry: RetryObserver | None = None,
        jitter: Randomness | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._connection = connection
        self._credentials = connection.credentials
        self.server = connection.server
        """URL of the API server, without a trailing slash."""
        self._timeout = timeout
        self._max_response_bytes = max_response_bytes
        self._jitter = jitter
        self._sleep = sleep
        self._tracer = trace.get_tracer("dynamo_shared.kube")
        self._proxy = URL(connection.proxy) if connection.proxy else None
        self._session = self._new_session(CONNECTIONS)
        self._stream_sessions: dict[bool, aiohttp.ClientSession] = {}
        """by whether their buffers are small"""
        self.observer = observer
        self._on_retry = on_retry

    async def close(self) -> None:
        """Close all connections; requests under way fail with Unavailable, and a login ends."""
        await self._credentials.close()
        await self._session.close()
        for session in self._stream_sessions.values():
            await session.close()

    async def request(self, outgoing: Outgoing) -> bytes:
        """The body of a successful answer. Raises KubeError."""
        headers = outgoing.sent_headers()
        if not trace.get_current_span().is_recording():
            return await self._within_time(outgoing, headers)
        method, path = outgoing.method, outgoing.path
        attributes = {"http.request.method": method, "url.path": path, "server.address": self.server}
        with self._tracer.start_as_current_span(f"kube {method}", kind=SpanKind.CLIENT, attributes=attributes) as child:
            context = child.get_span_context()
            headers["traceparent"] = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
            return await self._within_time(outgoing, headers)

    async def _within_time(self, outgoing: Outgoing, headers: CIMultiDict[str]) -> bytes:
        seconds = self._timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._attempts(outgoing, headers, time.monotonic() + seconds)
        except TimeoutError as error:
            raise errors.Unavailable(
                0, "Timeout", f"no response within {seconds:g} s", request=str(outgoing)
            ) from error

    async def _attempts(self, outgoing: Outgoing, headers: CIMultiDict[str], deadline: float) -> bytes:
        attempt, renewed = 0, False
        while True:
            attempt += 1
            await self._authorise(headers, outgoing.path)
            used = self._credentials.authorization, self._credentials.tls
            try:
                return await self._once(outgoing, headers)
            except errors.Unauthorized:
                # Not authenticated, so not executed: any request may be repeated. Another request may have renewed meanwhile.
                outdated = used != (self._credentials.authorization, self._credentials.tls)
                if renewed or not (outdated or await self._renew(outgoing.path)):
                    raise
                renewed = True
            except (errors.Unavailable, errors.TooManyRequests) as error:
                wait = self._wait_before_retry(error, attempt)
                if not outgoing.retry or wait is None or time.monotonic() + wait >= deadline:
                    raise
                if self._on_retry is not None:
                    self._on_retry(error)
                await self._sleep(wait)
            except errors.KubeError as error:
                # A request whose credentials were refused was not executed.
                error.attempts = attempt - renewed
                raise

    def _sent(
        self, session: aiohttp.ClientSession, outgoing: Outgoing, headers: CIMultiDict[str], **options: Any
    ) -> Awaitable[aiohttp.ClientResponse]:
        # Each request of a task sets its own value.
        _may_write.set(outgoing.may_write)
        target = f"{outgoing.path}?{outgoing.query}" if outgoing.query else outgoing.path
        return session.request(
            outgoing.method,
            URL(f"{self.server}{target}", encoded=True),
            data=outgoing.body,
            headers=headers,
            allow_redirects=False,
            proxy=self._proxy,
            server_hostname=self._connection.tls_server_name,
            ssl=self._tls(),
            **options,
        )

    async def _once(self, outgoing: Outgoing, headers: CIMultiDict[str]) -> bytes:
        method, path = outgoing.method, outgoing.path
        started = time.monotonic()
        status = 0
        try:
            async with await self._sent(self._session, outgoing, headers) as response:
                status = response.status
                content = await self._read(response, path, outgoing.most)
                if outgoing.warned is not None:
                    for warning in response.headers.getall("Warning", ()):
                        outgoing.warned(text_of(warning))
                if status < 300:
                    return content
            raise _refusal(response, content, str(outgoing))
        except _NETWORK_FAILURES as error:
            raise unreachable(error, str(outgoing)) from error
        finally:
            if self.observer is not None:
                self.observer(method, path, status, time.monotonic() - started)

    async def _read(self, response: aiohttp.ClientResponse, path: str, most: int | None = None) -> bytes:
        limit = self._max_response_bytes if most is None else most
        length = response.content_length
        if length is not None and length <= limit:
            return await response.read()
        if length is None:
            chunks: list[bytes] = []
            size = 0
            async for chunk in response.content.iter_any():
                size += len(chunk)
                if size > limit:
                    break
                chunks.append(chunk)
            else:
                return b"".join(chunks)
        response.close()
        raise errors.ResponseTooLarge(
            response.status, "ResponseTooLarge", f"the response is larger than {limit} bytes", request=f"GET {path}"
        )

    @asynccontextmanager
    async def stream(self, outgoing: Outgoing, *, silence: float) -> AsyncIterator[aiohttp.StreamReader]:
        """The body of an endless answer (a watch, a log, a Service's stream), as it arrives.

        `silence`: seconds without a byte after which the connection is considered dead. Not retried: only the caller
        knows where to resume. Raises KubeError, also inside the block when the connection breaks.
        """
        path, request, answered = outgoing.path, str(outgoing), False
        small = outgoing.small_buffers
        if small not in self._stream_sessions:
            self._stream_sessions[small] = self._new_session(WATCH_CONNECTIONS, small_buffers=small)
        # `connect` also limits what `sock_connect` does not: name resolution, and a proxy that accepts the connection
        # and does not answer.
        connect = min(CONNECT_SECONDS, silence)
        timeout = aiohttp.ClientTimeout(total=None, connect=connect, sock_connect=connect, sock_read=silence)
        sent = outgoing.sent_headers()
        await self._authorise(sent, path)
        try:
            # A Service that has received the announced length answers while the API server still waits for the body's
            # end: the API server then aborts the answer. With chunks, the Service gets the end last. (None without a
            # body: aiohttp sends chunks even for False.)
            chunked = True if outgoing.body is not None else None
            session = self._stream_sessions[small]
            async with asyncio.timeout(min(self._timeout, silence) if outgoing.prompt else None):
                response = await self._sent(session, outgoing, sent, timeout=timeout, chunked=chunked)
            async with response:
                if response.status == 401:
                    await self._renew(path)
                if response.status >= 300:
                    raise _refusal(response, await self._read(response, path), request)
                if small and response.connection is not None:
                    # TLS has its own buffer, in asyncio and in uvloop.
                    limit = getattr(response.connection.transport, "set_read_buffer_limits", None)
                    if limit is not None:
                        limit(SMALL_BUFFER_BYTES)
                answered = True
                yield response.content
        except TimeoutError as error:
            if not answered:
                raise unreachable(error, request) from error
            raise errors.Unavailable(
                0, errors.SILENCE, f"no data received for {silence:g} s", request=request
            ) from error
        except _NETWORK_FAILURES as error:
            raise unreachable(error, request) from error

    async def _authorise(self, headers: CIMultiDict[str], path: str) -> None:
        credentials = self._credentials
        if credentials.stale():
            await self._renew(path, force=False)
        if credentials.authorization:
            headers["Authorization"] = credentials.authorization

    async def _renew(self, path: str, *, force: bool = True) -> bool:
        try:
            return await self._credentials.refresh(force=force)
        except Exception as error:
            # Exec plugins raise various errors; for callers all of them mean: retry later.
            raise errors.Unavailable(0, "LoginFailed", f"cannot renew credentials: {error}", request=path) from error

    def _wait_before_retry(self, error: errors.KubeError, attempt: int) -> float | None:
        """Seconds to wait before the next attempt; None if no attempt is left. Half of the back-off is jitter."""
        if attempt >= ATTEMPTS or error.status not in (0, 429, 503) or error.reason == "LoginFailed":
            return None
        # Clients that were refused together must not come back together.
        pause = delay(attempt, _FIRST_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS, self._jitter, most=1.5)
        return pause + (error.retry_after or 0.0)

    def _tls(self) -> ssl.SSLContext | bool:
        """The current context: connections with another one are not reused."""
        return self._credentials.tls or self._connection.tls or True

    def _new_session(self, connections: int, *, small_buffers: bool = False) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=connections,
            keepalive_timeout=KEEPALIVE_SECONDS,
            # Control planes fail over by DNS; a stale address would be used for this long.
            ttl_dns_cache=30,
            socket_factory=partial(_socket, small_buffer=small_buffers),
        )
        session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Compressed answers cost both sides more CPU than they save time on the network.
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            auto_decompress=False,
            read_bufsize=SMALL_BUFFER_BYTES if small_buffers else ANSWER_BUFFER_BYTES,
            trust_env=False,
            request_class=_GuardedRequest,
        )
        # aiohttp would resend PUT and DELETE if a kept connection breaks, perhaps long after this replica lost its
        # keys. Requests are repeated here or by the caller.
        session._retry_connection = False
        return session


def unreachable(error: Exception, request: str) -> errors.Unavailable:
    """The Unavailable error of a failure without an answer; the caller chains `error`."""
    reason = "Timeout" if isinstance(error, TimeoutError) else "Unreachable"
    return errors.Unavailable(0, reason, connection_words(error), request=request)


def connection_words(error: BaseException) -> str:
    """Why there is no answer, without aiohttp's description of the client's TLS settings, and without the URL's path."""
    return _URL_PATHS.sub(r"\1", _TLS_SETTINGS.sub("", str(error))) or type(error).__name__


def _refusal(response: aiohttp.ClientResponse, content: bytes, request: str) -> errors.KubeError:
    retry_after = response.headers.get("Retry-After")
    return errors.from_response(response.status, content, retry_after=retry_after, request=request)


def _socket(address: AddrInfoType, *, small_buffer: bool) -> socket.socket:
    family, kind, protocol, _, _ = address
    created = socket.socket(family, kind, protocol)
    created.setblocking(False)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in PROBES.items():
        if (option := getattr(socket, name, None)) is not None:
            created.setsockopt(socket.IPPROTO_TCP, option, value)
    if small_buffer:
        created.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2 * SMALL_BUFFER_BYTES)
    return created
