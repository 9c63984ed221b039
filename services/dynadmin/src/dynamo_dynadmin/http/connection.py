"""Connections: what the HTTP parser refuses is answered as a problem, as every other refusal is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

#: Bytes of a request line, and of the name or the value of a header.
LONGEST_LINE = 8190


class HttpConnection(web.RequestHandler):
    """aiohttp's connection, with `refuse` for the answer to a request that cannot be read."""

    __slots__ = ("_refuse",)

    def __init__(self, refuse: Callable[[str], web.Response], manager: web.Server, **given: Any) -> None:
        super().__init__(manager, max_line_size=LONGEST_LINE, max_field_size=LONGEST_LINE, **given)
        self._refuse = refuse

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
