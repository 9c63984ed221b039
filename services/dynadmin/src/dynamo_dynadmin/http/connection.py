"""Connections: requests that the HTTP parser refuses are answered with a problem, like every other refusal; readers
that take no data are disconnected.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from dynamo_shared.runtime.acceptor import AcceptedConnection

from dynamo_dynadmin.http.paced_transport import PacedTransport

#: Bytes of a request line, and of the name or the value of a header.
LONGEST_LINE = 8190
#: While bytes wait to be sent, a reader must take `TAKEN_LEAST` bytes in `TAKEN_WITHIN` seconds. A reader that does not
#: is gone, or keeps the bytes in memory.
TAKEN_LEAST, TAKEN_WITHIN = 16 * 1024, 30.0
#: Unsent bytes allowed for all readers together, if there is more than one.
UNSENT = 128 << 20
#: Time to wait for the next request of a connection, including its headers. Longer than load balancers keep connections
#: (600 s). Seconds.
KEPT_FOR = 620.0


class SlowReaders:
    """The connections of a server with slow readers, the longest waiting first.

    A finished request no longer counts against the limits, but its unsent bytes may be many, also those of one event of
    a stream: data for a few slow readers would use up all memory.
    """

    def __init__(self) -> None:
        self._waiting: dict[HttpConnection, None] = {}

    def wait_for(self, connection: HttpConnection) -> None:
        """Add a connection. If too many bytes wait, cut off other connections of the user with the
        most unsent bytes, the longest waiting first.
        """
        self._waiting[connection] = None
        unsent: Counter[str] = Counter()
        for each in self._waiting:
            unsent[each.user] += each.unsent
        while unsent.total() > UNSENT and len(self._waiting) > 1:
            others = (each for each in self._waiting if each is not connection)
            slowest = max(others, key=lambda each: unsent[each.user])
            unsent[slowest.user] -= slowest.unsent
            self.stop_waiting(slowest)
            slowest.cut_off()

    def stop_waiting(self, connection: HttpConnection) -> None:
        """Remove a connection whose reader took most of the bytes, or that is closed."""
        self._waiting.pop(connection, None)


class HttpConnection(AcceptedConnection):
    """aiohttp's connection, with `refuse` for the answer to an unreadable request.

    aiohttp waits for a slow reader without limit, even after the handler ended and the request no longer counts.
    """

    __slots__ = ("_check", "_paced", "_refuse", "_slow", "user")

    def __init__(
        self, refuse: Callable[[str], web.Response], slow: SlowReaders, manager: web.Server, **given: Any
    ) -> None:
        super().__init__(
            manager, max_line_size=LONGEST_LINE, max_field_size=LONGEST_LINE, keepalive_timeout=KEPT_FOR, **given
        )
        # If the client leaves, its request is cancelled: no one reads the answer of an engine or of a simulation.
        manager.handler_cancellation = True
        self._refuse = refuse
        self._slow = slow
        self._check: asyncio.TimerHandle | None = None
        self._paced: PacedTransport | None = None
        self.user = ""
        """name under which the last request counts, at first the client's address"""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        self.user = str((transport.get_extra_info("peername") or ("",))[0])
        if transport.get_extra_info("sslcontext") is not None:
            self._paced = PacedTransport(cast("asyncio.Transport", transport))
            transport = cast("asyncio.Transport", self._paced)
        super().connection_made(transport)

    def pause_writing(self) -> None:
        """More bytes wait to be sent than the buffer may hold."""
        if self._paced is not None:
            self._paced.full = True
        if not self.writing_paused:
            super().pause_writing()
            self._watch()
            self._slow.wait_for(self)

    def resume_writing(self) -> None:
        """The reader took most of the bytes."""
        if self._paced is not None:
            self._paced.full = False
            self._paced.send()
            if self._paced.full:
                return
        self._stop_watching()
        self._slow.stop_waiting(self)
        super().resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is closed."""
        self._stop_watching()
        self._slow.stop_waiting(self)
        self._paced = None
        super().connection_lost(exc)

    @property
    def unsent(self) -> int:
        """Bytes that wait to be sent."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def cut_off(self) -> None:
        """Drop the connection and its unsent bytes."""
        if self.transport is not None:
            self.transport.abort()

    def _watch(self) -> None:
        if (transport := self.transport) is not None:
            loop = asyncio.get_running_loop()
            self._check = loop.call_later(
                TAKEN_WITHIN, self._abort_unless_read, transport, transport.get_write_buffer_size()
            )

    def _stop_watching(self) -> None:
        if self._check is not None:
            self._check.cancel()
            self._check = None

    def _abort_unless_read(self, transport: asyncio.WriteTransport, before: int) -> None:
        if transport.get_write_buffer_size() > before - TAKEN_LEAST:
            transport.abort()
        else:
            self._watch()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that the parser refused; it closes the connection."""
        if status != web.HTTPBadRequest.status_code:
            return super().handle_error(request, status, exc, message)
        answer = self._refuse(_detail(exc, message or ""))
        answer.force_close()
        return answer


def _detail(error: BaseException | None, message: str) -> str:
    if isinstance(error, LineTooLong):
        # The message does not repeat the line: it may hold a token.
        return f"the request line or a header is longer than {LONGEST_LINE} bytes; send a shorter one"
    reason = message.strip().partition("\n")[0].rstrip(":") or "cannot be parsed"
    return f"the request is not valid HTTP: {reason}"
