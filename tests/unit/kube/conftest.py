"""An API server that follows a script, for faults that a test cannot cause in a real one; and kubeconfigs."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml
from aiohttp import web
from dynamo_devcluster.certs import CertificateAuthority
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.config import Connection
from dynamo_shared.kube.credentials import Credentials
from dynamo_shared.kube.transport import Transport

from .steps import Step


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
    """Each request takes the next step of the script and is kept in `requests`. Clients' waits are recorded, not slept.

    Watches may have their own script, because they come next to other requests.
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


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def write(tmp_path: Path, authority: CertificateAuthority) -> Any:
    """Writes a kubeconfig with one cluster and one user."""

    def write(user: dict[str, Any] | None = None, name: str = "config", **cluster: Any) -> Path:
        path = tmp_path / name
        cluster = {
            "server": "https://api.example.com:6443/",
            "certificate-authority": str(authority.certificate),
            **cluster,
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "one",
            "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            "clusters": [{"name": "c", "cluster": {key: value for key, value in cluster.items() if value is not None}}],
            "users": [{"name": "u", "user": user or {}}] if user is not None else [],
        }
        path.write_text(yaml.safe_dump(config))
        return path

    return write
