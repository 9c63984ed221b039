"""The tenant's HTTP server: it acts as every pod, misbehaves, and records the requests.

Nothing listens at the addresses of KWOK's pods. The platform sends requests through the proxy in its settings, which is
this server, in absolute form; requests to a tenant's own addresses arrive here, too.
"""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

_BOMB = gzip.compress(b'{"status": "success", "loras": "' + b"a" * (64 << 20) + b'"}', 6)
_DEEP = b"[" * 400_000 + b"]" * 400_000
_METADATA = "http://169.254.169.254/latest/meta-data/iam/security-credentials/"


@dataclass
class Farm:
    """`mode` is its behaviour; `heard` are the last thousand request lines."""

    port: int = 0
    mode: str = "ok"
    heard: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def reset(self, mode: str = "ok") -> None:
        """Change the behaviour from now on, and clear the record."""
        self.mode = mode
        self.heard.clear()
        self.bodies.clear()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one answer."""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(120):
                head = await reader.readuntil(b"\r\n\r\n")
                if len(self.heard) < 1000:
                    self.heard.append(head.split(b"\r\n", 1)[0].decode("latin-1"))
                    self.bodies.append(head)
                await self._answer(writer)
        with suppress(OSError):
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:  # noqa: PLR0912 - a table of misbehaviours
        match self.mode:
            case "hang":
                await asyncio.sleep(110)
            case "close":
                return
            case "drip":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
                for _ in range(1000):
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.1)
            case "drip-head":
                for byte in b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 1000:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.1)
            case "stream":
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for _ in range(100_000):
                    writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                    await writer.drain()
            case "huge":
                _send(writer, b'{"data": "' + b"a" * (10 << 20) + b'"}')
            case "bomb":
                _send(writer, _BOMB, "Content-Encoding: gzip")
            case "deep":
                _send(writer, _DEEP)
            case "headers":
                many = "\r\n".join(f"X-{number}: {'a' * 100}" for number in range(20_000))
                _send(writer, b"{}", many)
            case "long-status":
                writer.write(b"HTTP/1.1 500 " + b"a" * (1 << 20) + b"\r\nContent-Length: 0\r\n\r\n")
            case "secret-error":
                _send(writer, b'{"error": "password=hunter2-the-secret token=abc"}', status="500 No")
            case "redirect":
                _send(writer, b"", f"Location: {_METADATA}", status="302 Found")
            case "self-redirect":
                _send(writer, b"", f"Location: {self.url}/again", status="307 Temporary Redirect")
            case "binary":
                _send(writer, bytes(range(256)) * 2000)
            case "lone":
                _send(writer, b'{"loras": ["\\ud800", "\\u0000"], "data": [{"id": "\\udfff"}]}')
            case "numbers":
                _send(writer, b'{"loras": 1e999999, "status": ' + b"9" * 100_000 + b"}")
            case "many":
                _send(writer, json.dumps({"loras": {f"l{n}": {"id": n} for n in range(20_000)}}).encode())
            case _:
                _send(writer, b'{"status": "success", "loras": [], "data": []}')
        await writer.drain()


def _send(writer: asyncio.StreamWriter, body: bytes, *headers: str, status: str = "200 OK") -> None:
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    writer.write("\r\n".join([*head, "Connection: close", "", ""]).encode() + body)


@asynccontextmanager
async def farm() -> AsyncIterator[Farm]:
    """The server, listening on loopback."""
    up = Farm()
    server = await asyncio.start_server(up.handle, "127.0.0.1", 0)
    up.port = server.sockets[0].getsockname()[1]
    try:
        yield up
    finally:
        server.close()
