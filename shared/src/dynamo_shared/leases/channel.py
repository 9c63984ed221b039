"""The gRPC connection to etcd: one member at a time, TLS, client certificates, user and password.

`client.py` compares client libraries. gRPC's own fail-over needs all endpoints as addresses of one name, but the
platform has a list of URLs, so a channel that does not answer is replaced by one to the next endpoint. Files are read
when a channel is created: rotated certificates and passwords take effect with the next connection.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import grpc
import grpc.aio
from etcd3 import etcdrpc

from dynamo_shared.api.untrusted.addresses import in_url
from dynamo_shared.leases.errors import (
    CertificateFileError,
    EtcdError,
    EtcdLoginError,
    EtcdUnavailableError,
    LeaseNotFoundError,
)

DEFAULT_PORT = 2379

_OPTIONS: tuple[tuple[str, Any], ...] = (
    # A returning member is noticed within one or two seconds, not after gRPC's default of up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Despite its name the time that one attempt to connect may take, with TLS: as long as a request (`timeout`).
    ("grpc.min_reconnect_backoff_ms", 3_000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # Pings detect a connection that broke silently (a node that vanished). etcd allows one ping per 5 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    # This client has its own time-outs and retries, ignores web proxies, and does not share connections.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)

_UNAVAILABLE = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)
# Each member answers the same: the database is full (api/v3rpc/rpctypes/error.go), or an answer exceeds gRPC's limit.
_SAME_ELSEWHERE = ("database space exceeded", "larger than max")
# etcd's messages for an unknown or expired token, and for a missing one; api/v3rpc/rpctypes/error.go.
_TOKEN_REFUSED = ("invalid auth token", "user name is empty", "revision of auth store is old")
_LOGIN_REFUSED = ("authentication failed", "permission denied")
_AUTH_IS_OFF = "authentication is not enabled"

# Metadata that makes etcd end a stream when its member loses the leader: otherwise the stream would be silent
# meanwhile, and appear healthy.
_WITH_LEADER = ("hasleader", "true")

# A call whose channel another task closes ends as if its own task were cancelled; `_translate` distinguishes the two.
_ENDED = (grpc.aio.AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError)

Stub: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdOptions:
    """The address of etcd, and how to log in. `password` is called at each log-in, because passwords rotate."""

    endpoints: Sequence[str]
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    user: str = ""
    password: Callable[[], str] = field(default=lambda: "", repr=False)
    timeout: float = 3.0
    """Time limit of one request, in seconds."""


class Channel:
    """Calls to the member that answers. All methods must be called in the same event loop."""

    def __init__(self, options: EtcdOptions) -> None:
        if not options.endpoints:
            raise ValueError("at least one etcd endpoint is required")
        self._options = options
        self._current = 0
        self._channel: Any = None
        self._token: str | None = None
        self._login = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def endpoint(self) -> str:
        """The member in use."""
        return self._options.endpoints[self._current % len(self._options.endpoints)]

    async def call(self, stub: Stub, method: str, request: Any, *, timeout: float | None = None) -> Any:
        """One request and its answer. `stub` is a stub class of etcdrpc. Raises EtcdError."""
        within = timeout if timeout is not None else self._options.timeout

        async def once(channel: grpc.aio.Channel, metadata: tuple[tuple[str, str], ...]) -> Any:
            return await getattr(stub(channel), method)(request, timeout=within, metadata=metadata)

        return await self._with_token(once)

    async def exchange(self, stub: Stub, method: str, request: Any, *, timeout: float | None = None) -> Any:
        """One request and the first answer of a streaming method. Raises EtcdError."""
        within = timeout if timeout is not None else self._options.timeout

        async def once(channel: grpc.aio.Channel, metadata: tuple[tuple[str, str], ...]) -> Any:
            call = getattr(stub(channel), method)(timeout=within, metadata=metadata)
            try:
                await call.write(request)
                answer = await call.read()
                if answer is grpc.aio.EOF:
                    raise EtcdUnavailableError(f"{self.endpoint}: {method} ended without a response")
                return answer
            finally:
                call.cancel()

        return await self._with_token(once)

    @asynccontextmanager
    async def stream(self, stub: Stub, method: str, request: Any) -> AsyncIterator[AsyncIterator[Any]]:
        """The endless answers of a streaming method, while the block runs; both may raise EtcdError."""
        await self._authenticate()
        channel = self._open()
        call = getattr(stub(channel), method)(metadata=(_WITH_LEADER, *self._metadata()))

        async def answers() -> AsyncIterator[Any]:
            try:
                await call.write(request)
                while (answer := await call.read()) is not grpc.aio.EOF:
                    yield answer
                raise EtcdUnavailableError(f"{self.endpoint}: the server ended {method}")
            except _ENDED as error:
                raise self._translate(error, channel) from error

        try:
            yield answers()
        finally:
            call.cancel()

    async def close(self) -> None:
        """End all calls."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close(None)
        if self._closing:
            await asyncio.gather(*self._closing, return_exceptions=True)

    async def _with_token(self, once: Callable[..., Any]) -> Any:
        for attempt in (1, 2):
            await self._authenticate()
            channel, token = self._open(), self._token
            try:
                return await once(channel, self._metadata())
            except _ENDED as error:
                if attempt == 1 and self._options.user and _says(error, _TOKEN_REFUSED):
                    if self._token == token:
                        self._token = None
                    continue
                raise self._translate(error, channel) from error
        raise AssertionError("unreachable")

    async def _authenticate(self) -> None:
        """Get a token if user and password are configured and there is no token yet."""
        options = self._options
        if not options.user or self._token is not None:
            return
        async with self._login:
            if self._token is not None:
                return
            channel = self._open()
            try:
                password = options.password()
                request = etcdrpc.AuthenticateRequest(name=options.user, password=password)
                answer = await etcdrpc.AuthStub(channel).Authenticate(request, timeout=options.timeout)
            except OSError as error:
                raise CertificateFileError(f"{error.filename}: {error.strerror or error}") from error
            except UnicodeDecodeError:
                # Not chained to that error, which contains the password.
                raise CertificateFileError(f"the password of etcd's user {options.user} is not UTF-8") from None
            except _ENDED as error:
                if _says(error, (_AUTH_IS_OFF,)):
                    self._token = ""
                    return
                raise self._translate(error, channel) from error
            self._token = str(answer.token)

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("token", self._token),) if self._token else ()

    def _open(self) -> grpc.aio.Channel:
        if self._channel is None:
            target, secure = _target(self.endpoint)
            self._channel = (
                grpc.aio.secure_channel(target, self._credentials(), options=_OPTIONS)
                if secure
                else grpc.aio.insecure_channel(target, options=_OPTIONS)
            )
        return self._channel

    def _credentials(self) -> grpc.ChannelCredentials:
        options = self._options
        try:
            ca, key, cert = (
                path.read_bytes() if path is not None else None
                for path in (options.ca_file, options.key_file, options.cert_file)
            )
        except OSError as error:
            raise CertificateFileError(f"{error.filename}: {error.strerror or error}") from error
        return grpc.ssl_channel_credentials(ca, key, cert)

    def _translate(self, error: BaseException, channel: grpc.aio.Channel) -> EtcdError:
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise error
        if not isinstance(error, grpc.aio.AioRpcError):
            return EtcdUnavailableError(f"{self.endpoint}: the call was cancelled")
        code, words = error.code(), error.details() or ""
        message = f"{self.endpoint}: {words or code.name}"
        if "requested lease not found" in words:
            return LeaseNotFoundError(message)
        if _says(error, _LOGIN_REFUSED) or _says(error, _TOKEN_REFUSED):
            return EtcdLoginError(message)
        if code in _UNAVAILABLE:
            if not _says(error, _SAME_ELSEWHERE):
                self._turn(channel)
            return EtcdUnavailableError(message)
        return EtcdError(message)

    def _turn(self, broken: grpc.aio.Channel) -> None:
        """Use the next member, over a new connection, for the next call."""
        if self._channel is not broken:
            return
        self._channel, self._token = None, None
        self._current += 1
        # With a grace period, because calls of other tasks on it may still be answered.
        task = asyncio.get_running_loop().create_task(broken.close(self._options.timeout))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    details = error.details() if isinstance(error, grpc.aio.AioRpcError) else None
    return any(word in (details or "") for word in words)


def _target(endpoint: str) -> tuple[str, bool]:
    """Address of an endpoint in gRPC's form, and whether it needs TLS."""
    parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
    return f"{in_url(parts.hostname or '')}:{parts.port or DEFAULT_PORT}", parts.scheme == "https"
