"""Steps of a scripted server: what it does with a request."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Step = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Step:
    async def step(_request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status, headers=headers)

    return step


def refuse(status: int, reason: str = "", message: str = "", **more: Any) -> Step:
    headers = more.pop("headers", None)
    details = {"name": "a"} if reason == "NotFound" else {}
    body = {"kind": "Status", "code": status, "reason": reason, "message": message or reason, "details": details}
    return answer({**body, **more}, status, headers)


def text(body: str, status: int = 200) -> Step:
    async def step(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=body, status=status)

    return step


def reset() -> Step:
    """Close the connection without an answer."""

    async def step(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return step


def hang() -> Step:
    """Give no answer until the client gives up."""

    async def step(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    return step


def watch(*events: dict[str, Any] | bytes, then: str = "end") -> Step:
    """Answer a watch with these events, and then end, hang (send nothing more) or break the connection."""

    async def step(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for event in events:
            await response.write(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n")
        if then == "hang":
            await asyncio.Event().wait()
        elif then == "break":
            assert request.transport is not None
            request.transport.abort()
        return response

    return step
