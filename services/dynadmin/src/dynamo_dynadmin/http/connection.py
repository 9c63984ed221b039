"""Connections: what the HTTP parser refuses is answered as a problem, as every other refusal is; who takes nothing is cut off."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from dynamo_dynadmin.http.pacing import PacedTransport

#: Bytes of a request line, and of the name or the value of a header.
LONGEST_LINE = 8190
#: While bytes wait to be sent, a reader takes so many in so many seconds. One that does not is gone, or keeps them in memory.
TAKEN_LEAST, TAKEN_WITHIN = 16 * 1024, 30.0
#: Bytes that may wait for all readers together, where that is more than one.
UNSENT = 128 << 20
#: For the next request of a connection, its headers included. Longer than load balancers keep connections (600 s). Seconds.
KEPT_FOR = 620.0


class Connections:
    """The connections of a server: all of them, and those whose readers are waited for, longest first.

    Anyone may open some, without a token: of more than `most`, one that waits for a request is closed for each further one.

    A request that is answered counts no longer, and what is sent may be large, as an event of a stream may be: what waits for a
    few callers who read slowly would take all memory.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[HttpConnection, None] = {}
        self._waiting: dict[HttpConnection, None] = {}

    def opened(self, connection: HttpConnection) -> None:
        """One more. Where there are too many, one without a request is closed: of those that never had one, if there are any."""
        self._open[connection] = None
        if len(self._open) <= self._most:
            return
        idle = (each for each in self._open if each is not connection and each.waits_for_a_request)
        # The oldest, of those that never had a request if there are any.
        oldest = min(idle, key=lambda each: each.had_a_request, default=None)
        if oldest is not None:
            self.closed(oldest)
            oldest.cut_off()

    def closed(self, connection: HttpConnection) -> None:
        """One less."""
        self._open.pop(connection, None)

    def wait_for(self, connection: HttpConnection) -> None:
        """One more. Where too much waits, others of the user for whom most waits are cut off, longest first."""
        self._waiting[connection] = None
        unsent: Counter[str] = Counter()
        for each in self._waiting:
            unsent[each.user] += each.unsent
        while unsent.total() > UNSENT and len(self._waiting) > 1:
            others = (each for each in self._waiting if each is not connection)
            slowest = max(others, key=lambda each: unsent[each.user])
            unsent[slowest.user] -= slowest.unsent
            self.wait_no_more(slowest)
            slowest.cut_off()

    def wait_no_more(self, connection: HttpConnection) -> None:
        """It has taken most of it, or is gone."""
        self._waiting.pop(connection, None)


class HttpConnection(web.RequestHandler):
    """aiohttp's connection, with `refuse` for the answer to a request that cannot be read.

    aiohttp waits for a reader without end, also after the handler has ended and the request counts no longer.
    """

    __slots__ = ("_all", "_check", "_paced", "_refuse", "user")

    def __init__(
        self, refuse: Callable[[str], web.Response], connections: Connections, manager: web.Server, **given: Any
    ) -> None:
        super().__init__(
            manager, max_line_size=LONGEST_LINE, max_field_size=LONGEST_LINE, keepalive_timeout=KEPT_FOR, **given
        )
        self._refuse = refuse
        self._all = connections
        self._check: asyncio.TimerHandle | None = None
        self._paced: PacedTransport | None = None
        self.user = ""
        """whose limits the last request counts for"""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is here."""
        if transport.get_extra_info("sslcontext") is not None:
            self._paced = PacedTransport(cast("asyncio.Transport", transport))
            transport = cast("asyncio.Transport", self._paced)
        super().connection_made(transport)
        self._all.opened(self)

    def pause_writing(self) -> None:
        """More waits to be sent than is to be kept."""
        if self._paced is not None:
            self._paced.full = True
        if not self.writing_paused:
            super().pause_writing()
            self._watch()
            self._all.wait_for(self)

    def resume_writing(self) -> None:
        """Most of it has been taken."""
        if self._paced is not None:
            self._paced.full = False
            self._paced.send()
            if self._paced.full:
                return
        self._watch_no_more()
        self._all.wait_no_more(self)
        super().resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Nothing is taken any more."""
        self._watch_no_more()
        self._all.wait_no_more(self)
        self._all.closed(self)
        self._paced = None
        super().connection_lost(exc)

    @property
    def waits_for_a_request(self) -> bool:
        """Whether nothing has come since the last answer, or not all of a request's headers."""
        return self._waiter is not None and not self._waiter.done()

    @property
    def had_a_request(self) -> bool:
        """Whether a request has come on it."""
        return self._request_count > 0

    @property
    def unsent(self) -> int:
        """Bytes that wait to be taken."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def cut_off(self) -> None:
        """Drop the connection, and all that waits for it."""
        if self.transport is not None:
            self.transport.abort()

    def _watch(self) -> None:
        if (transport := self.transport) is not None:
            loop = asyncio.get_running_loop()
            self._check = loop.call_later(
                TAKEN_WITHIN, self._cut_off_unless_read, transport, transport.get_write_buffer_size()
            )

    def _watch_no_more(self) -> None:
        if self._check is not None:
            self._check.cancel()
            self._check = None

    def _cut_off_unless_read(self, transport: asyncio.WriteTransport, before: int) -> None:
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
        """The answer to a request that the parser refused; the connection ends with it."""
        if status != web.HTTPBadRequest.status_code:
            return super().handle_error(request, status, exc, message)
        answer = self._refuse(_detail(exc, message or ""))
        answer.force_close()
        return answer


def _detail(error: BaseException | None, message: str) -> str:
    if isinstance(error, LineTooLong):
        # What was sent is not repeated: it may be a token.
        return f"the request line or a header is longer than {LONGEST_LINE} bytes; send a shorter one"
    reason = message.strip().partition("\n")[0].rstrip(":") or "it cannot be parsed"
    return f"the request is not valid HTTP: {reason}"
