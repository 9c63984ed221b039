"""Connections: what the HTTP parser refuses is answered as a problem, as every other refusal is; who takes nothing is cut off."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

#: Bytes of a request line, and of the name or the value of a header.
LONGEST_LINE = 8190
#: While bytes wait to be sent, a reader takes so many in so many seconds. One that does not is gone, or keeps them in memory.
TAKEN_LEAST, TAKEN_WITHIN = 16 * 1024, 30.0


class HttpConnection(web.RequestHandler):
    """aiohttp's connection, with `refuse` for the answer to a request that cannot be read.

    aiohttp waits for a reader without end, also after the handler has ended and the request counts no longer.
    """

    __slots__ = ("_check", "_refuse")

    def __init__(self, refuse: Callable[[str], web.Response], manager: web.Server, **given: Any) -> None:
        super().__init__(manager, max_line_size=LONGEST_LINE, max_field_size=LONGEST_LINE, **given)
        self._refuse = refuse
        self._check: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """More waits to be sent than is to be kept."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Most of it has been taken."""
        self._watch_no_more()
        super().resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Nothing is taken any more."""
        self._watch_no_more()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if (transport := self.transport) is not None:
            loop = asyncio.get_running_loop()
            self._check = loop.call_later(TAKEN_WITHIN, self._cut_off, transport, transport.get_write_buffer_size())

    def _watch_no_more(self) -> None:
        if self._check is not None:
            self._check.cancel()
            self._check = None

    def _cut_off(self, transport: asyncio.WriteTransport, before: int) -> None:
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
