"""Workers with the API of Dynamo's system server, behind one HTTP proxy, because nothing listens at KWOK's addresses.

The proxy takes the place of a cluster's network; requests arrive in absolute form, so it knows the pod.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from aiohttp import web
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.runtime import Settings

from .platform import settings

HUGE = 10 << 20


@dataclass
class FakeWorker:
    """One worker. `mode` is its behaviour: ok, hang, 500, half, huge, redirect, refuse, absent, short, models, liar."""

    mode: str = "ok"
    delay: float = 0.0
    loras: dict[str, str] = field(default_factory=dict)
    #: The answer at `/metadata`; None if it does not register in Kubernetes.
    metadata: Any = None
    #: Requests in order: (method, path as sent).
    requests: list[tuple[str, str]] = field(default_factory=list)

    def methods(self, method: str) -> list[str]:
        """Paths of requests with a method."""
        return [path for sent, path in self.requests if sent == method]


class Farm:
    """All workers, by address; a new one behaves well."""

    def __init__(self, delay: float = 0.0) -> None:
        self.workers: dict[str, FakeWorker] = {}
        self.delay = delay
        self.url = ""
        self.at_once = 0
        self.most_at_once = 0

    def __getitem__(self, host: str) -> FakeWorker:
        return self.workers.setdefault(host, FakeWorker(delay=self.delay))

    def loaded(self) -> Counter[str]:
        """The number of workers that have each adapter."""
        return Counter(name for worker in self.workers.values() for name in worker.loras)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request."""
        target = urlsplit(request.raw_path)
        path = target.path
        worker = self[target.hostname or "direct"]
        worker.requests.append((request.method, path))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(worker.delay)
            if (response := await _misbehave(worker, request)) is not None:
                return response
            return _answer(worker, request.method, path, await request.read())
        finally:
            self.at_once -= 1


async def _misbehave(worker: FakeWorker, request: web.BaseRequest) -> web.StreamResponse | None:
    if worker.mode == "hang":
        await asyncio.sleep(3600)
    if worker.mode == "500":
        return web.json_response({"status": "error", "message": "out of GPU memory"}, status=500)
    if worker.mode == "redirect":
        return web.Response(status=302, headers={"Location": "http://169.254.169.254/latest/meta-data"})
    if worker.mode == "absent":
        return web.Response(status=404, text="Route not found")
    if worker.mode == "half":
        response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"status": "succ')
        assert request.transport is not None
        request.transport.abort()
        return response
    if worker.mode == "huge":
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for _ in range(HUGE >> 16):
            await response.write(b" " * (1 << 16))
        return response
    return None


def _answer(worker: FakeWorker, method: str, path: str, body: bytes) -> web.Response:
    if worker.mode == "models" and (method, path) == ("GET", "/v1/models"):
        return web.json_response({"data": [{"id": "base"}, *({"id": name} for name in worker.loras)]})
    if (method, path) == ("GET", "/metadata") and worker.metadata is not None:
        return web.json_response(worker.metadata)
    base = "/loras" if worker.mode == "short" else "/v1/loras"
    if not path.startswith(base) or (worker.mode == "models" and method == "GET"):
        return web.Response(status=404, text="Route not found")
    if method == "GET":
        return web.json_response({"status": "success", "loras": dict.fromkeys(worker.loras, 7)})
    if method == "POST":
        return _load(worker, body)
    name = unquote(path.removeprefix(f"{base}/"))
    if name not in worker.loras:
        return web.json_response({"status": "error", "message": f"LoRA adapter '{name}' not found"}, status=500)
    del worker.loras[name]
    return web.json_response({"status": "success", "lora_name": name})


def _load(worker: FakeWorker, body: bytes) -> web.Response:
    asked = json.loads(body)
    if worker.mode == "refuse":
        said = f"LoRA not found at {asked['source']['uri']}?X-Amz-Signature=abc"
        return web.json_response({"status": "error", "message": said}, status=500)
    if worker.mode != "liar":
        # Like Dynamo's workers: an adapter that is loaded already stays unchanged, whatever its source.
        worker.loras.setdefault(asked["lora_name"], asked["source"]["uri"])
    return web.json_response({"status": "success", "lora_name": asked["lora_name"]})


@asynccontextmanager
async def farm(delay: float = 0.0, port: int = 0) -> AsyncIterator[Farm]:
    """Workers that answer during the block; `url` is the proxy's."""
    workers = Farm(delay)
    server = web.ServerRunner(
        web.Server(workers.handle, handler_cancellation=True, access_log=None), shutdown_timeout=0.1
    )
    await server.setup()
    site = web.TCPSite(server, "127.0.0.1", port)
    await site.start()
    workers.url = f"http://127.0.0.1:{server.addresses[0][1]}"
    try:
        yield workers
    finally:
        await server.cleanup()


def quick_settings(plane: ControlPlane, nats: NatsServer, lora: Farm, namespace: str, **extra: str) -> Settings:
    """Settings of model discovery with these workers; it waits for seconds instead of minutes."""
    values = {
        "PLATFORM__KUBERNETES__NAMESPACES": namespace,
        "PLATFORM__MODEL_DISCOVERY__PROXY": lora.url,
        "PLATFORM__MODEL_DISCOVERY__REQUEST_TIMEOUT": "1s",
        "PLATFORM__MODEL_DISCOVERY__LONGEST_RETRY": "1s",
        "PLATFORM__MODEL_DISCOVERY__UNLOAD_WITHIN": "3s",
    }
    return settings(plane.kubeconfig, nats.url, **{**values, **extra})
