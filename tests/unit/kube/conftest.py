"""An API server that follows a test's script: for faults that a test cannot cause in a real one."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.config import Connection
from dynamo_shared.kube.credentials import Credentials
from dynamo_shared.kube.transport import Transport

Step = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Received:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ScriptedServer:
    """Each request takes the next step of the script, and is kept in `requests`. Clients' waits are recorded, not waited.

    Where watches have a script of their own, they take its steps: they come next to other requests.
    """

    def __init__(self) -> None:
        self.script: deque[Step] = deque()
        self.watches: deque[Step] = deque()
        self.requests: list[Received] = []
        self.waits: list[float] = []
        self.arrived = asyncio.Event()
        self.url = ""
        self._runner: web.AppRunner | None = None
        self._transports: list[Transport] = []

    async def start(self) -> None:
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        for transport in self._transports:
            await transport.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def client(self, *, credentials: Credentials | None = None, timeout: float = 5, **options: Any) -> KubeClient:
        connection = Connection(self.url, None, None, None, credentials or Credentials(None), "default")
        transport = Transport(connection, timeout=timeout, sleep=self._sleep, jitter=lambda: 0.5, **options)
        self._transports.append(transport)
        return KubeClient(transport, field_manager="tester")

    def then(self, *steps: Step) -> None:
        self.script.extend(steps)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        query = {name: values[0] for name, values in parse_qs(request.query_string).items()}
        self.requests.append(Received(request.method, request.path, query, dict(request.headers), await request.read()))
        self.arrived.set()
        script = self.watches if self.watches and "watch" in query else self.script
        if not script:
            return web.json_response({"kind": "Status", "message": "the script is over"}, status=418)
        return await script.popleft()(request)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class Steps:
    """What a server can do with a request."""

    @staticmethod
    def answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Step:
        async def step(_request: web.Request) -> web.StreamResponse:
            return web.json_response(body, status=status, headers=headers)

        return step

    @classmethod
    def refuse(cls, status: int, reason: str = "", message: str = "", **more: Any) -> Step:
        headers = more.pop("headers", None)
        details = {"name": "a"} if reason == "NotFound" else {}
        body = {"kind": "Status", "code": status, "reason": reason, "message": message or reason, "details": details}
        return cls.answer({**body, **more}, status, headers)

    @staticmethod
    def text(body: str, status: int = 200) -> Step:
        async def step(_request: web.Request) -> web.StreamResponse:
            return web.Response(text=body, status=status)

        return step

    @staticmethod
    def reset() -> Step:
        """The connection breaks without an answer."""

        async def step(request: web.Request) -> web.StreamResponse:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        return step

    @staticmethod
    def hang() -> Step:
        """No answer until the client gives up."""

        async def step(request: web.Request) -> web.StreamResponse:
            await asyncio.Event().wait()
            return web.Response()

        return step

    @staticmethod
    def watch(*events: dict[str, Any] | bytes, then: str = "end") -> Step:
        """A watch with these events, that then ends, hangs (sends nothing more) or breaks."""

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


@pytest.fixture
def steps() -> type[Steps]:
    return Steps
