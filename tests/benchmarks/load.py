"""A load generator in a separate process: requests at a fixed rate over persistent HTTPS connections.

Open loop: the clock alone decides when a request is due, and its latency counts from then. If no connection is free,
another one is opened; at the limit, the request waits while its latency counts.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import ssl
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from . import reviews

BODIES: dict[str, Callable[[], Callable[[int], bytes]]] = {
    "validate": reviews.admission,
    "mutate": reviews.admission,
    "convert": reviews.conversion,
}
#: Text in an answer that allows the request.
ACCEPTED = {"validate": b'"allowed":true', "mutate": b'"allowed":true', "convert": b'"status":"Success"'}
MOST_CONNECTIONS = 64
#: Connections opened before the measurement, as the API server has them from earlier requests.
FIRST_CONNECTIONS = 8
ANSWERED_WITHIN = 30.0


class Connection(asyncio.Protocol):
    """HTTP/1.1, one request at a time."""

    def __init__(self, answered: Callable[[Connection, bytes], None]) -> None:
        self._answered = answered
        self._received = bytearray()
        self._expected = 0
        self._transport: asyncio.Transport | None = None
        self.due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready for requests."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def send(self, request: bytes, due: float) -> None:
        """Send a request; the answer goes to the callback."""
        self.due = due
        if self._transport is not None:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Collect an answer of the length in its header."""
        self._received += data
        if not self._expected:
            head, separator, _ = bytes(self._received).partition(b"\r\n\r\n")
            if not separator:
                return
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            self._expected = len(head) + 4 + int(length)
        if len(self._received) >= self._expected:
            answer = bytes(self._received)
            self._received.clear()
            self._expected = 0
            self._answered(self, answer)

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


class Load:
    """Requests at a rate to one path."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext, path: str) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._head = (
            f"POST /{path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        ).encode()
        self._accepted = ACCEPTED[path]
        self._body = BODIES[path]()
        self._free: list[Connection] = []
        self._all: list[Connection] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[bytes, float]] = deque()
        self._left = 0
        self._done = asyncio.Event()
        self.latencies: list[float] = []
        self.late: list[float] = []
        self.refused = 0

    async def run(self, rate: float, seconds: float) -> None:
        """Send for this time, and wait for the last answers. TimeoutError if they do not arrive."""
        for _ in range(FIRST_CONNECTIONS - len(self._all)):
            await self._open()
        self.latencies, self.late, self.refused = [], [], 0
        requests = [self._request(number) for number in range(int(rate * seconds))]
        self._left = len(requests)
        self._done.clear()
        loop = asyncio.get_running_loop()
        gc.collect()
        gc.disable()
        # A thread keeps the time, because the event loop rounds timers up to milliseconds.
        pace = threading.Thread(target=self._pace, args=(loop, requests, rate), daemon=True)
        pace.start()
        async with asyncio.timeout(seconds + ANSWERED_WITHIN):
            await self._done.wait()
        gc.enable()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._all:
            connection.close()

    def _pace(self, loop: asyncio.AbstractEventLoop, requests: list[bytes], rate: float) -> None:
        begin = time.perf_counter() + 0.01
        for number, request in enumerate(requests):
            due = begin + number / rate
            wait = due - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            loop.call_soon_threadsafe(self._send, request, due)

    def _request(self, number: int) -> bytes:
        body = self._body(number)
        return self._head % len(body) + body

    def _send(self, request: bytes, due: float) -> None:
        self.late.append(time.perf_counter() - due)
        if self._free:
            self._free.pop().send(request, due)
            return
        self._waiting.append((request, due))
        if len(self._all) + len(self._opening) < MOST_CONNECTIONS:
            task = asyncio.get_running_loop().create_task(self._open())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(self._answer), self._host, self._port, ssl=self._tls
        )
        self._all.append(connection)
        self._next(connection)

    def _next(self, connection: Connection) -> None:
        if self._waiting:
            connection.send(*self._waiting.popleft())
        else:
            self._free.append(connection)

    def _answer(self, connection: Connection, answer: bytes) -> None:
        self.latencies.append(time.perf_counter() - connection.due)
        if not answer.startswith(b"HTTP/1.1 200") or self._accepted not in answer:
            self.refused += 1
            if self.refused == 1:
                print(answer[:2000].decode(errors="replace"), file=sys.stderr)
        self._next(connection)
        self._left -= 1
        if not self._left:
            self._done.set()


async def main(options: argparse.Namespace) -> str:
    """Latencies in milliseconds as JSON, those of a warm-up left out."""
    tls = ssl.create_default_context(cafile=options.authorities)
    load = Load(options.host, options.port, tls, options.path)
    try:
        if options.warm_up:
            await load.run(options.rate / 4, options.warm_up)
        await load.run(options.rate, options.seconds)
    finally:
        load.close()
    latencies = [round(each * 1000, 3) for each in load.latencies]
    late = [round(each * 1000, 3) for each in load.late]
    return json.dumps({"latencies": latencies, "late": late, "refused": load.refused})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--authorities", required=True, help="file of the certificates to trust")
    parser.add_argument("--path", choices=sorted(BODIES), required=True)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--warm-up", type=float, default=1.0, help="seconds at a quarter of the rate, not counted")
    print(asyncio.run(main(parser.parse_args())))
