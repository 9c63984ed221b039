"""Server-sent events: limited in number, kept alive, and ended when the caller's rights or token end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import msgspec
import structlog
from aiohttp import ClientConnectionError, web
from dynamo_shared.aio import spread
from dynamo_shared.kube import Forbidden, KubeError

from dynamo_dynadmin.http.call import TURN, Call
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.identity.access import Access, ResourceAttributes
from dynamo_dynadmin.identity.provider import IssuerUnavailable
from dynamo_dynadmin.identity.who import Disallowed, Unidentified, whose_limit
from dynamo_dynadmin.metrics import DynadminMetrics

_encode = msgspec.json.Encoder().encode
#: Bytes that a connection buffers immediately: below this, a write never waits and needs no task.
NEVER_WAITS = 32 * 1024
#: Time after which a client reconnects, at the latest. Half of it is random: all streams of a replica end at once.
#: Seconds.
RETRY = 3.0

log = structlog.get_logger("dynamo.dynadmin.streams")


class StreamEnded(Exception):
    """The stream must end: `event` gives the reason."""

    def __init__(self, event: str, detail: str) -> None:
        super().__init__(detail)
        self.event = event


class HeadersOnly(Exception):
    """HEAD on a stream: `response` has the headers that the stream would have."""

    def __init__(self, response: web.StreamResponse) -> None:
        super().__init__()
        self.response = response


@dataclass(eq=False)
class Streams:
    """Open streams of this replica, and their limits and checks."""

    access: Access
    metrics: DynadminMetrics
    _: KW_ONLY
    total: int
    of_a_user: int
    heartbeat: float
    recheck: float
    draining: bool = field(default=False, init=False)
    _open: dict[object, tuple[str, web.Request]] = field(default_factory=dict, init=False)
    """caller and request of each stream"""
    _lasting: set[asyncio.Timeout] = field(default_factory=set, init=False)
    """one per open stream; it expires when this replica shuts down"""

    def end(self) -> None:
        """End all streams and accept no others: readers continue at another replica."""
        self.draining = True
        while self._lasting:
            self._lasting.pop().reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def opened(self, call: Call, acts: Sequence[ResourceAttributes]) -> AsyncIterator[Stream]:
        """A stream for a call that needs these rights. Raises ProblemError if too many are open, and HeadersOnly."""
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
                "X-Request-ID": call.id,
                "X-Content-Type-Options": "nosniff",
            }
        )
        if call.request.method == "HEAD":
            raise HeadersOnly(response)
        key = call.caller.limit_key
        self._forget_gone(key)
        if self.draining:
            raise ProblemError("unavailable", "this replica is shutting down; retry with another one", retry_after=1)
        if len(self._open) >= self.total:
            raise ProblemError("unavailable", f"{self.total} streams are open; retry later", retry_after=5)
        if self._count(key) >= self.of_a_user:
            raise ProblemError(
                "too-many-requests",
                f"{self.of_a_user} streams {whose_limit(key)} are open; close one",
                retry_after=5,
            )
        place = object()
        self._open[place] = key, call.request
        # Streams have their own limits, and do not count as requests in progress.
        call.request[TURN].leave()
        call.request[TURN].status_if_left = 200
        self.metrics.streams.set(len(self._open))
        stream = Stream(response, call, lambda: self._checked(call, acts), self.recheck, self.heartbeat)
        try:
            await response.prepare(call.request)
            await stream.write(f"retry: {round(1000 * spread(RETRY))}\n\n".encode())
            try:
                async with self._until_the_end():
                    yield stream
            except StreamEnded as end:
                await stream.send(end.event, {"detail": str(end)})
            except KubeError as error:
                event = "unauthorized" if isinstance(error, Forbidden) else "error"
                await stream.send(event, {"detail": error.message[:1000]})
            except (ConnectionError, ClientConnectionError):
                raise
            except Exception:
                # The answer has begun: only the stream can report the error.
                log.exception("stream failed", request=call.id)
                detail = f"the service failed on this stream; the service's log has the reason under request {call.id}"
                await stream.send("error", {"detail": detail})
            await response.write_eof()
        except (ConnectionError, ClientConnectionError):
            log.debug("stream broke", request=call.id)
        finally:
            self._open.pop(place, None)
            self.metrics.streams.set(len(self._open))

    @asynccontextmanager
    async def _until_the_end(self) -> AsyncIterator[None]:
        """Raises StreamEnded when this replica shuts down, also if that began after the stream was accepted."""
        lasting = asyncio.timeout(0.0 if self.draining else None)
        try:
            async with lasting:
                if not self.draining:
                    self._lasting.add(lasting)
                yield
        except TimeoutError as error:
            if lasting.expired():
                raise StreamEnded("error", "this replica is shutting down; open the stream again") from error
            raise
        finally:
            self._lasting.discard(lasting)

    def _count(self, key: str) -> int:
        return sum(1 for whose, _ in self._open.values() if whose == key)

    def _forget_gone(self, key: str) -> None:
        """At a limit, do not count readers that have left: their streams end with the next heartbeat."""
        if len(self._open) < self.total and self._count(key) < self.of_a_user:
            return
        for place, (_, request) in list(self._open.items()):
            if request.transport is None or request.transport.is_closing():
                del self._open[place]

    async def _checked(self, call: Call, acts: Sequence[ResourceAttributes]) -> None:
        await _identified(call)
        for act in acts:
            verdict = await self.access.may(call.caller, act, again=True)
            if not verdict.allowed:
                raise StreamEnded("unauthorized", f"{call.caller.identity.user} may no longer {act}")


async def _identified(call: Call) -> None:
    """Raises StreamEnded if the token no longer identifies the caller: the check of rights does not notice an expired
    or changed token.
    """
    if (again := call.request[TURN].again) is None:
        return
    try:
        now = await again()
    except (Unidentified, Disallowed) as error:
        raise StreamEnded("unauthorized", str(error)) from error
    except IssuerUnavailable as error:
        raise StreamEnded("error", f"the token cannot be verified again: {error}") from error
    if now.key != call.caller.key:
        raise StreamEnded("unauthorized", "the token's user or groups have changed; open the stream again")


class Stream:
    """One open stream."""

    def __init__(
        self,
        response: web.StreamResponse,
        call: Call,
        check: Callable[[], Awaitable[None]],
        recheck: float,
        heartbeat: float,
    ) -> None:
        self.response = response
        self._request = call.request
        self._check = check
        self._recheck = recheck
        self._heartbeat = heartbeat
        self._expires = call.caller.expires
        self._written = time.monotonic()
        self._next = self._written + recheck

    def timeout(self) -> float:
        """Seconds to wait for something to send, before `keep` must be called."""
        return max(0.01, min(self._until_due(), self._written + self._heartbeat - time.monotonic()))

    async def keep(self) -> None:
        """Check the stream's rights again when due. Raises StreamEnded if they ended.

        A reader that received nothing for a heartbeat gets one: many changes may arrive that are not for this reader.
        """
        await self._require_rights()
        # Timers may fire a little early.
        if time.monotonic() - self._written >= 0.9 * self._heartbeat:
            await self.write(b": heartbeat\n\n")

    async def _require_rights(self) -> None:
        if self._expires is not None and time.time() >= self._expires:
            raise StreamEnded("unauthorized", "the token has expired; log in again")
        if time.monotonic() >= self._next:
            try:
                await self._check()
            except KubeError as error:
                # Without an answer, the stream shows nothing more.
                raise StreamEnded("error", f"your rights cannot be checked: {error}") from error
            self._next = time.monotonic() + self._recheck

    async def send(self, event: str, data: Any, identity: str = "") -> None:
        """An event; `data` is encoded unless it is JSON already."""
        await self.write(frame(event, data, identity))

    async def write(self, content: bytes) -> None:
        """Send raw bytes as fast as the reader's line allows: `HttpConnection` disconnects readers that take nothing.

        Raises ConnectionError, also if the stream's rights end meanwhile: no other event can follow half an event.
        """
        self._written = time.monotonic()
        transport = self._request.transport
        if transport is not None and transport.get_write_buffer_size() + len(content) < NEVER_WAITS:
            await self.response.write(content)
            return
        sending = asyncio.create_task(self.response.write(content), name="slow reader")
        try:
            while not (await asyncio.wait({sending}, timeout=self._until_due()))[0]:
                await self._require_rights()
        except StreamEnded as error:
            if transport is not None:
                transport.abort()
            raise ConnectionError(str(error)) from error
        finally:
            sending.cancel()
        await sending

    def _until_due(self) -> float:
        """Seconds until the stream's rights must be checked again."""
        lasts = self._recheck if self._expires is None else self._expires - time.time()
        return max(0.01, min(lasts, self._next - time.monotonic()))


def frame(event: str, data: Any, identity: str = "") -> bytes:
    """One event as sent. JSON without line breaks is one data line."""
    body = data if isinstance(data, bytes) else _encode(data)
    head = f"id: {identity}\nevent: {event}\ndata: " if identity else f"event: {event}\ndata: "
    return head.encode() + body.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n\n"
