"""Replaces a Service: one address for the webhooks; new connections go to ready replicas."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from dynamo_shared.aio import ended

from .service import Service

#: Seconds.
PROBE_EVERY, PROBE_WITHIN = 0.5, 1.0


class Backend(Protocol):
    """A replica of admission: its address, and its readiness probe."""

    health_port: int
    webhook_port: int


class Balancer:
    """Round-robin over the `ready` ones of `backends`, which answered their last probe."""

    def __init__(self) -> None:
        self.backends: Sequence[Backend] = ()
        self.port = 0
        self.ready: list[Backend] = []
        self._turn = itertools.count()

    @property
    def url(self) -> str:
        """The address at which the API server calls the webhooks."""
        return f"https://127.0.0.1:{self.port}"

    def take(self, services: Sequence[Service]) -> None:
        """Use the replicas of admission among these services as backends."""
        self.backends = [each for each in services if each.name == "admission"]

    async def probe(self) -> None:
        """Probe the backends until cancelled."""
        while True:
            answers = await asyncio.gather(*(self._is_ready(each) for each in self.backends))
            self.ready = [each for each, ready in zip(self.backends, answers, strict=True) if ready]
            await asyncio.sleep(PROBE_EVERY)

    async def _is_ready(self, service: Backend) -> bool:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(PROBE_WITHIN):
                reader, writer = await asyncio.open_connection("127.0.0.1", service.health_port)
                try:
                    writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
                    return b" 200 " in await reader.readline()
                finally:
                    writer.close()
        return False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        ready = self.ready or list(self.backends)
        try:
            if not ready:
                return
            chosen = ready[next(self._turn) % len(ready)]
            with suppress(OSError):
                upstream, downstream = await asyncio.open_connection("127.0.0.1", chosen.webhook_port)
                try:
                    await asyncio.gather(_pipe(reader, downstream), _pipe(upstream, writer))
                finally:
                    downstream.close()
        finally:
            writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.write_eof() if writer.can_write_eof() else writer.close()


@asynccontextmanager
async def balanced() -> AsyncIterator[Balancer]:
    """A balancer that listens; add backends once they exist."""
    balancer = Balancer()
    server = await asyncio.start_server(balancer.serve, "127.0.0.1", 0)
    balancer.port = server.sockets[0].getsockname()[1]
    probing = asyncio.create_task(balancer.probe())
    try:
        yield balancer
    finally:
        await ended(probing)
        server.close()
