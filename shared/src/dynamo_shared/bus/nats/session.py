"""One connection to NATS, from its handshake to its end. A lost one is never repaired: a new session replaces it.

nats-py can reconnect by itself, but then subscriptions, pull requests and unacknowledged publishes are in states that
cannot be observed (nats.py #504, #898; ordered consumers that wake up only after their idle heartbeats). Here the end of a
session is one event: everything that depends on it learns of it at once and starts again on the next session.
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
"""Seconds between pings; after two unanswered ones the connection counts as lost."""

API_TIMEOUT = 5.0

SWEEP_INTERVAL = 0.25
"""Seconds between checks for overdue acknowledgements, and for an end that the library did not report."""

WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
NO_SPACE = frozenset({10002, 10023, 10047, 10077, 10122})
TOO_LARGE = frozenset({10054})
STREAM_NOT_FOUND = 10059
NO_PEERS = 10005
"""Members of a cluster that a stream would be on are away, or have yet to join it."""

CONSUMERS_LIMITED_FROM = (2, 15)
"""The version of NATS."""

MOST_DENIED = 1000
"""Subjects that are remembered as denied."""

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
    """A live connection. `ended` is set when it is over, for whatever reason."""

    def __init__(self, client: NatsClient) -> None:
        self.client = client
        self.js = JetStreamContext(client, timeout=API_TIMEOUT)
        self.ended = asyncio.Event()
        self._prefix = f"{client.new_inbox()}."
        self._next_token = 0
        self._waiting: dict[str, tuple[asyncio.Future[Ack], float, str]] = {}
        """reply subject -> the acknowledgement, until when it may come, the subject that was published"""
        self._denied: set[str] = set()
        self._expected: set[str] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._on_end: dict[Callable[[], None], None] = {}
        self._on_denial: dict[Callable[[], None], None] = {}

    @classmethod
    async def open(cls, options: NatsOptions, server: str) -> Self:
        """Connects to one server; BusUnavailableError where that does not work."""
        try:
            tls, identity = options.ssl_context(server), options.identity()
        except BusOptionsError as error:
            # Files are replaced while this runs: what cannot be read now can be in a moment.
            raise BusUnavailableError(str(error)) from error
        client = NatsClient(tls=tls is not None)
        trouble: list[Exception] = []
        holder: list[NatsSession] = []

        async def on_error(error: Exception) -> None:
            trouble.append(error)
            del trouble[:-1]
            if holder:
                log.debug("nats reports", error=_plain(error))
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
                    # One attempt: the keeper of the sessions decides when and where to try again.
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
        """Calls back when the session ends."""
        self._on_end[listener] = None

    def forget(self, listener: Callable[[], None]) -> None:
        """Calls back no more."""
        self._on_end.pop(listener, None)

    def end(self) -> None:
        """Declares the session over."""
        self.ended.set()
        listeners, self._on_end = self._on_end, {}
        for listener in listeners:
            listener()

    @property
    def limits_consumers(self) -> bool:
        """Whether the server limits the consumers of streams that say nothing of them; it can change the limit, too."""
        version = self.client.connected_server_version
        try:
            return (version.major, version.minor) >= CONSUMERS_LIMITED_FROM
        except ValueError:
            return False

    def is_denied(self, subject: str) -> bool:
        """Whether the server has refused a publish on the subject on this connection, for want of the right to it."""
        return subject.lower() in self._denied

    def expect_denial(self, subject: str) -> None:
        """A refusal of publishes on the subject is an answer to the caller, not a fault: its log line does not warn."""
        self._expected.add(subject.lower())

    def _on_error(self, text: str) -> None:
        """A refused publish has no answer, only an error on the connection: it is passed to the publisher that waits."""
        match = _DENIED.search(text)
        if match is None:
            return
        # The library gives the server's words in lower case.
        subject = match[1].lower()
        report = log.debug if subject in self._expected else log.warning
        report("this NATS user may not publish there", subject=subject)
        for reply in [reply for reply, (_, _, about) in self._waiting.items() if about.lower() == subject]:
            future, _, about = self._waiting.pop(reply)
            if not future.done():
                future.set_exception(BusDeniedError(f"{about}: this NATS user may not publish there"))
        if len(self._denied) < MOST_DENIED:
            self._denied.add(subject)
        for listener in list(self._on_denial):
            listener()

    async def call(self, request: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Makes a request that ends with the session: nats-py lets it wait for its full time-out on a dead connection.

        Raises what nats-py raises, TimeoutError where the session ended or the server refused a request.
        """
        if self.ended.is_set():
            raise TimeoutError("the connection to NATS was lost")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as scope:

            def give_up() -> None:
                scope.reschedule(loop.time())

            self.on_end(give_up)
            # Which of the requests was refused is not worth knowing: the others are tried again.
            self._on_denial[give_up] = None
            try:
                return await cancellable(request(*args, **kwargs))
            finally:
                self.forget(give_up)
                self._on_denial.pop(give_up, None)

    async def close(self) -> None:
        """Ends the session, and all waits for acknowledgements with an error."""
        self.end()
        if self._sweeper is not None:
            await ended(self._sweeper)
        self.fail_waiting(BusUnavailableError("the connection to NATS was lost"))
        await _close(self.client)

    def fail_waiting(self, error: BusError) -> None:
        """Gives every publish that waits for its acknowledgement an error."""
        waiting, self._waiting = self._waiting, {}
        for future, _, _ in waiting.values():
            if not future.done():
                future.set_exception(error)

    async def send(
        self, subject: str, payload: bytes, headers: Mapping[str, str] | None, timeout: float
    ) -> asyncio.Future[Ack]:
        """Puts a message on the wire; the future is its acknowledgement."""
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
            raise MessageTooLargeError(f"{subject}: {len(payload)} bytes are more than the server takes") from error
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
        """Fails publishes whose acknowledgement is overdue. One task for all: a timer each would cost much."""
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
        # 503: no stream listens on the subject, or JetStream is still starting.
        return StreamNotFoundError("no stream takes this subject")
    try:
        answer = _decode_answer(message.data)
    except msgspec.DecodeError as error:
        return BusUnavailableError(f"unreadable acknowledgement: {error}")
    if answer.error is None:
        return Ack(answer.stream, answer.seq, answer.duplicate)
    return error_of(answer.error.code, answer.error.err_code, answer.error.description)


def error_of(code: int | None, err_code: int | None, description: str | None) -> BusError:
    """Our error for one of JetStream's."""
    text = description or f"JetStream error {code}"
    if err_code in WRONG_LAST_SEQUENCE:
        return WrongSequenceError(text)
    if err_code in NO_SPACE:
        return StreamFullError(text)
    if err_code in TOO_LARGE:
        return MessageTooLargeError(text)
    if err_code == STREAM_NOT_FOUND:
        return StreamNotFoundError(text)
    if err_code == NO_PEERS or (code is not None and code >= 500):
        return BusUnavailableError(text)
    return BusError(text)


def translate(error: Exception) -> BusError:
    """Our error for one that nats-py raised."""
    if isinstance(error, nats.js.errors.APIError):
        return error_of(error.code, error.err_code, error.description)
    if isinstance(error, nats.js.errors.NoStreamResponseError):
        return StreamNotFoundError("no stream takes this subject")
    return BusUnavailableError(_plain(error))


TRANSLATED = (nats.errors.Error, TimeoutError, OSError)
"""What nats-py may raise; give it to `translate`."""


def _plain(error: Exception) -> str:
    text = str(error).removeprefix("nats: ")
    return text or type(error).__name__


async def _close(client: Client) -> None:
    try:
        async with asyncio.timeout(1.0):
            await cancellable(client.close())
    except (TimeoutError, nats.errors.Error, OSError, AttributeError, AssertionError) as error:
        # A connection that is gone cannot be closed politely.
        log.debug("closing the connection to NATS", error=_plain(error))
