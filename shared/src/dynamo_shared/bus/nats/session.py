"""One connection to NATS, from its handshake to its end. A lost one is never repaired: a new session replaces it.

nats-py can reconnect by itself, but then the states of subscriptions, pull requests and unacknowledged publishes cannot
be observed (nats.py #504, #898; ordered consumers that wake up only after their idle heartbeats). Here the end of a
session is one event: everything that depends on it is notified at once and starts again on the next session.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec, Self, TypeVar

import msgspec
import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.client import JetStreamContext

from dynamo_shared.aio import cancellable, ended
from dynamo_shared.bus.errors import (
    BusDeniedError,
    BusError,
    BusUnavailableError,
    MessageTooLargeError,
    StreamFullError,
    StreamNotFoundError,
    WrongSequenceError,
)
from dynamo_shared.bus.nats.client import NatsClient
from dynamo_shared.bus.nats.options import BusOptionsError, NatsOptions
from dynamo_shared.bus.protocol import Ack
from dynamo_shared.bus.sizes import check_size

PING_INTERVAL = 10
"""Seconds between pings; the connection counts as lost after two unanswered ones."""

API_TIMEOUT = 5.0

SWEEP_INTERVAL = 0.25
"""Seconds between checks for overdue acknowledgements and for an end that the library did not report."""

WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
NO_SPACE = frozenset({10002, 10023, 10047, 10077, 10122})
TOO_LARGE = frozenset({10054})
STREAM_NOT_FOUND = 10059
NO_SUITABLE_PEERS = 10005
"""The members of a cluster that would hold a stream are unavailable or have not joined yet."""

CONSUMERS_LIMITED_FROM = (2, 15)
"""Version of NATS."""

MOST_DENIED = 1000
"""Limit of remembered denied subjects."""

_DENIED = re.compile(r"permissions violation for publish to \"([^\"]+)\"", re.IGNORECASE)

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger("dynamo.bus.nats")


class _AckError(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _AckAnswer(msgspec.Struct):
    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: _AckError | None = None


_decode_answer = msgspec.json.Decoder(_AckAnswer).decode


class NatsSession:
    """A live connection. `ended` is set when it has ended, for any reason."""

    def __init__(self, client: NatsClient) -> None:
        self.client = client
        self.js = JetStreamContext(client, timeout=API_TIMEOUT)
        self.ended = asyncio.Event()
        self._prefix = f"{client.new_inbox()}."
        self._next_token = 0
        self._waiting: dict[str, tuple[asyncio.Future[Ack], float, str]] = {}
        """reply subject -> acknowledgement, its deadline, the subject that was published to"""
        self._denied: set[str] = set()
        self._expected: set[str] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._on_end: dict[Callable[[], None], None] = {}
        self._on_denial: dict[Callable[[], None], None] = {}

    @classmethod
    async def open(cls, options: NatsOptions, server: str) -> Self:
        """Connect to one server; BusUnavailableError if that fails."""
        try:
            tls, identity = options.ssl_context(server), options.identity()
        except BusOptionsError as error:
            # Files are replaced at run time: an unreadable file may be readable in a moment.
            raise BusUnavailableError(str(error)) from error
        client = NatsClient(tls=tls is not None)
        trouble: list[Exception] = []
        holder: list[NatsSession] = []

        async def on_error(error: Exception) -> None:
            trouble.append(error)
            del trouble[:-1]
            if holder:
                log.debug("error of the NATS client", error=_plain(error))
                holder[0]._on_error(_plain(error))

        async def on_closed() -> None:
            for session in holder:
                session.end()

        arguments: dict[str, Any] = identity
        if tls is not None:
            arguments["tls"] = tls
        try:
            async with asyncio.timeout(options.connect_timeout):
                connecting = client.connect(
                    server,
                    name=options.name,
                    error_cb=on_error,
                    closed_cb=on_closed,
                    disconnected_cb=on_closed,
                    allow_reconnect=False,
                    # One attempt only: the keeper decides when and where to try again.
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    connect_timeout=max(1, int(options.connect_timeout)),
                    ping_interval=PING_INTERVAL,
                    max_outstanding_pings=2,
                    skip_subject_validation=True,
                    inbox_prefix=options.inbox,
                    **arguments,
                )
                await cancellable(connecting)
                session = cls(client)
                await client.listen(f"{session._prefix}*", session._on_answer)
        except (TimeoutError, OSError, nats.errors.Error, ValueError) as error:
            await _close(client)
            cause = trouble[-1] if trouble and isinstance(error, nats.errors.NoServersError | TimeoutError) else error
            raise BusUnavailableError(_plain(cause)) from error
        except BaseException:
            await _close(client)
            raise
        holder.append(session)
        session._sweeper = asyncio.create_task(session._sweep(), name="nats-ack-sweeper")
        if client.is_closed:
            session.end()
        return session

    def on_end(self, listener: Callable[[], None]) -> None:
        """Register a listener for the end of the session."""
        self._on_end[listener] = None

    def forget(self, listener: Callable[[], None]) -> None:
        """Remove a listener."""
        self._on_end.pop(listener, None)

    def end(self) -> None:
        """Declare the session ended."""
        self.ended.set()
        listeners, self._on_end = self._on_end, {}
        for listener in listeners:
            listener()

    @property
    def limits_consumers(self) -> bool:
        """Whether the server limits the consumers of streams by default; such a server can also change the limit."""
        version = self.client.connected_server_version
        try:
            return (version.major, version.minor) >= CONSUMERS_LIMITED_FROM
        except ValueError:
            return False

    def is_denied(self, subject: str) -> bool:
        """Whether the server has denied this user a publish on the subject on this connection."""
        return subject.lower() in self._denied

    def expect_denial(self, subject: str) -> None:
        """Log a refusal of publishes on the subject without a warning: it is an answer to the caller, not a fault."""
        self._expected.add(subject.lower())

    def _on_error(self, text: str) -> None:
        """Pass a refusal to the waiting publisher: a refused publish has no answer, only an error on the connection."""
        match = _DENIED.search(text)
        if match is None:
            return
        # The library converts the server's text to lower case.
        subject = match[1].lower()
        report = log.debug if subject in self._expected else log.warning
        report("publish denied: this NATS user has no permission", subject=subject)
        for reply in [reply for reply, (_, _, about) in self._waiting.items() if about.lower() == subject]:
            future, _, about = self._waiting.pop(reply)
            if not future.done():
                future.set_exception(BusDeniedError(f"{about}: this NATS user has no permission to publish"))
        if len(self._denied) < MOST_DENIED:
            self._denied.add(subject)
        for listener in list(self._on_denial):
            listener()

    async def call(self, request: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a request that ends with the session: on a dead connection nats-py would wait for its full timeout.

        Raises nats-py's errors, and TimeoutError if the session ended or the server refused a request.
        """
        if self.ended.is_set():
            raise TimeoutError("the connection to NATS was lost")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as scope:

            def abort() -> None:
                # A request that was aborted may need a moment to end.
                if not scope.expired():
                    scope.reschedule(loop.time())

            self.on_end(abort)
            # It does not matter which request was refused: the others are retried.
            self._on_denial[abort] = None
            try:
                return await cancellable(request(*args, **kwargs))
            finally:
                self.forget(abort)
                self._on_denial.pop(abort, None)

    async def close(self) -> None:
        """End the session, and fail all publishes that wait for an acknowledgement."""
        self.end()
        if self._sweeper is not None:
            await ended(self._sweeper)
        self.fail_waiting(BusUnavailableError("the connection to NATS was lost"))
        await _close(self.client)

    def fail_waiting(self, error: BusError) -> None:
        """Fail every publish that waits for its acknowledgement."""
        waiting, self._waiting = self._waiting, {}
        for future, _, _ in waiting.values():
            if not future.done():
                future.set_exception(error)

    async def send(
        self, subject: str, payload: bytes, headers: Mapping[str, str] | None, timeout: float
    ) -> asyncio.Future[Ack]:
        """Send a message; the future is its acknowledgement."""
        check_size(subject, payload, headers, self.client.max_payload)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Ack] = loop.create_future()
        self._next_token += 1
        reply = f"{self._prefix}{self._next_token}"
        self._waiting[reply] = (future, loop.time() + timeout, subject)
        try:
            await self.client.publish(subject, payload, reply=reply, headers=dict(headers) if headers else None)
        except nats.errors.MaxPayloadError as error:
            self._waiting.pop(reply, None)
            raise MessageTooLargeError(f"{subject}: {len(payload)} bytes exceed the server's max_payload") from error
        except (nats.errors.Error, OSError) as error:
            self._waiting.pop(reply, None)
            raise BusUnavailableError(_plain(error)) from error
        except BaseException:
            self._waiting.pop(reply, None)
            raise
        return future

    def _on_answer(self, message: Msg) -> None:
        entry = self._waiting.pop(message.subject, None)
        if entry is None or entry[0].done():
            return
        result = _ack_of(message)
        if isinstance(result, Ack):
            entry[0].set_result(result)
        else:
            entry[0].set_exception(result)

    async def _sweep(self) -> None:
        """Fail publishes whose acknowledgement is overdue. One task for all: a timer for each would be expensive."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_INTERVAL)
            if self.client.is_closed:
                self.end()
            now = loop.time()
            late = [reply for reply, (_, deadline, _) in self._waiting.items() if deadline <= now]
            for reply in late:
                future, _, _ = self._waiting.pop(reply)
                if not future.done():
                    future.set_exception(BusUnavailableError("NATS did not acknowledge in time"))


def _ack_of(message: Msg) -> Ack | BusError:
    if not message.data:
        # 503: no stream has the subject, or JetStream is still starting.
        return StreamNotFoundError("no stream has this subject")
    try:
        answer = _decode_answer(message.data)
    except msgspec.DecodeError as error:
        return BusUnavailableError(f"cannot decode acknowledgement: {error}")
    if answer.error is None:
        return Ack(answer.stream, answer.seq, answer.duplicate)
    return error_of(answer.error.code, answer.error.err_code, answer.error.description)


def error_of(code: int | None, err_code: int | None, description: str | None) -> BusError:
    """The platform's error for an error of JetStream."""
    text = description or f"JetStream error {code}"
    if err_code in WRONG_LAST_SEQUENCE:
        return WrongSequenceError(text)
    if err_code in NO_SPACE:
        return StreamFullError(text)
    if err_code in TOO_LARGE:
        return MessageTooLargeError(text)
    if err_code == STREAM_NOT_FOUND:
        return StreamNotFoundError(text)
    if err_code == NO_SUITABLE_PEERS or (code is not None and code >= 500):
        return BusUnavailableError(text)
    return BusError(text)


def translate(error: Exception) -> BusError:
    """The platform's error for an error of nats-py."""
    if isinstance(error, nats.js.errors.APIError):
        return error_of(error.code, error.err_code, error.description)
    if isinstance(error, nats.js.errors.NoStreamResponseError):
        return StreamNotFoundError("no stream has this subject")
    return BusUnavailableError(_plain(error))


TRANSLATED = (nats.errors.Error, TimeoutError, OSError)
"""What nats-py may raise; pass it to `translate`."""


def _plain(error: Exception) -> str:
    text = str(error).removeprefix("nats: ")
    return text or type(error).__name__


async def _close(client: Client) -> None:
    try:
        async with asyncio.timeout(1.0):
            await cancellable(client.close())
    except (TimeoutError, nats.errors.Error, OSError, AttributeError, AssertionError) as error:
        # A lost connection cannot be closed normally.
        log.debug("error while closing the connection to NATS", error=_plain(error))
