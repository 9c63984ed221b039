"""`python -m tests.stage.prober NAME=PORT...`: probes /healthz of processes five times a second and keeps the worst.

It is a separate process, so that the tests do not delay it. One of the ports belongs to an idle server in a further
process, which shows how slow the machine is. Each line on standard input starts a new account and is answered with the
previous one, JSON: by name the longest wait in seconds, including unanswered probes.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from contextlib import suppress

EVERY = 0.2
GIVE_UP = 30.0
CONTROL = "(control)"
_REQUEST = b"GET /healthz HTTP/1.0\r\n\r\n"
_CONTROL = """
import asyncio, sys
async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.0 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
    await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())
"""


class Account:
    """The longest waits by name."""

    def __init__(self) -> None:
        self.worst: dict[str, float] = {}
        self.since: dict[str, float] = {}

    def end(self) -> dict[str, float]:
        """End the current account, including pending probes, and start a new one."""
        now = time.monotonic()
        results = dict(self.worst)
        for name, began in self.since.items():
            results[name] = max(results.get(name, 0.0), now - began)
        self.worst = {}
        self.since = dict.fromkeys(self.since, now)
        return {name: round(seconds, 3) for name, seconds in sorted(results.items())}


async def probe(account: Account, name: str, port: int) -> None:
    """Probe one process until cancelled. A refused connection counts as a wait until one is accepted."""
    account.since[name] = time.monotonic()
    while True:
        try:
            async with asyncio.timeout(GIVE_UP):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(_REQUEST)
                    answered = (await reader.read(64)).startswith(b"HTTP/1.")
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            answered = False
        if answered:
            waited = time.monotonic() - account.since.pop(name)
            account.worst[name] = max(account.worst.get(name, 0.0), waited)
            await asyncio.sleep(EVERY)
            account.since[name] = time.monotonic()
        else:
            await asyncio.sleep(EVERY)


async def main(ports: dict[str, int]) -> None:
    """Probe until standard input ends."""
    account = Account()
    control = subprocess.Popen([sys.executable, "-c", _CONTROL], stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: ASYNC220
    assert control.stdout is not None
    ports = {**ports, CONTROL: int(control.stdout.readline())}
    tasks = [asyncio.create_task(probe(account, name, port)) for name, port in ports.items()]
    loop = asyncio.get_running_loop()
    try:
        while await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(account.end()), flush=True)
    finally:
        for task in tasks:
            task.cancel()
        control.kill()
        control.wait()


class Prober:
    """The prober process, as tests use it."""

    def __init__(self, ports: dict[str, int]) -> None:
        self._ports = ports
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Prober:
        arguments = [f"{name}={port}" for name, port in self._ports.items()]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.stage.prober", *arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        await self.account()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), 10)

    async def account(self) -> dict[str, float]:
        """The longest waits since the last call, by name; CONTROL is the idle server."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        await self._process.stdin.drain()
        document: dict[str, float] = json.loads(await asyncio.wait_for(self._process.stdout.readline(), 30))
        return document


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main({name: int(port) for name, _, port in (each.partition("=") for each in sys.argv[1:])}))
