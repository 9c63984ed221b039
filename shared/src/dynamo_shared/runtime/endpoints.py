"""The HTTP endpoints of a process: /healthz and /readyz on one port, /metrics on another."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from dynamo_shared.aio import Lanes, ended
from dynamo_shared.runtime.acceptor import AcceptedConnection, Acceptor
from dynamo_shared.runtime.health import Health
from dynamo_shared.runtime.scrapers import GRANTED, Scrapers
from dynamo_shared.runtime.tls import ServingTls, context_of_files

#: Each means all addresses of this host, IPv4 and IPv6. Go's servers interpret them so, and addresses in an operator's
#: configuration rely on that; Python's would listen on only one family.
ALL_ADDRESSES = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with


def listening_socket(address: str, port: int, backlog: int) -> socket.socket:
    """A socket that listens on one address of this host, or on all. Port 0: the system picks one. OSError if taken."""
    both = address in ALL_ADDRESSES and socket.has_dualstack_ipv6()
    host = "" if address in ALL_ADDRESSES else address
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=backlog, dualstack_ipv6=both)


#: How long a connection waits for its next request, including headers; aiohttp's own handler waits an hour. Seconds.
KEPT_FOR = 75.0
#: Connections that wait to be accepted.
BACKLOG = 512
#: Open connections of a port that kubelets and Prometheus use.
MOST_OPEN = 256

log = structlog.get_logger("dynamo.runtime")


def _connection(manager: web.Server, **given: Any) -> AcceptedConnection:
    return AcceptedConnection(manager, keepalive_timeout=KEPT_FOR, **given)


@asynccontextmanager
async def serving(
    app: web.Application,
    address: str,
    port: int,
    tls: ssl.SSLContext | None = None,
    connection: Callable[..., AcceptedConnection] = _connection,
    *,
    most: int = MOST_OPEN,
    finish_within: float = 2.0,
) -> AsyncIterator[int]:
    """Serve an application; yields the port, which the system picks if `port` is 0. OSError if the port is taken.

    `most`: connections that may be open at a time (Acceptor). At the end the listener closes, and requests under
    way have `finish_within` seconds to finish.
    """
    runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=finish_within)
    await runner.setup()
    manager, loop = runner.server, asyncio.get_running_loop()
    assert manager is not None, "set up above"
    acceptor = Acceptor(partial(connection, manager, loop=loop, access_log=None), tls, most)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(acceptor.close)
        stack.push_async_callback(runner.cleanup)
        listening = stack.enter_context(listening_socket(address, port, BACKLOG))
        accepting = asyncio.create_task(acceptor.run(listening))
        stack.push_async_callback(ended, accepting)
        yield listening.getsockname()[1]


def server_tls(folder: Path) -> ssl.SSLContext:
    """TLS with the certificate in a folder (tls.crt and tls.key, like a mounted Secret). OSError if it cannot be read.

    Certificates are rotated at run time: each handshake checks whether the files have changed since they were read.
    """
    files = (folder / "tls.crt", folder / "tls.key")

    def stamps() -> tuple[int, ...]:
        return tuple(file.stat().st_mtime_ns for file in files)

    read, trouble = stamps(), ""

    def renew() -> None:
        nonlocal read, trouble
        before, trouble = trouble, ""
        try:
            if (now := stamps()) != read:
                tls.exchange(context_of_files(*files))
                read = now
        except OSError as error:
            trouble = str(error)
            # There may be thousands of handshakes before the files are repaired.
            if trouble != before:
                log.warning("cannot reload certificate", folder=str(folder), error=trouble)

    tls = ServingTls(context_of_files(*files), renew)
    return tls.context


def health_app(health: Health) -> web.Application:
    """/healthz: the process lives; /readyz: all parts work; /readyz/PART: one part works. All of them list the parts."""

    async def healthz(_: web.Request) -> web.Response:
        return _json(health, 200)

    async def readyz(_: web.Request) -> web.Response:
        return _json(health, 200 if health.ready else 503)

    async def part(request: web.Request) -> web.Response:
        ready = health.ready_part(request.match_info["part"])
        return _json(health, 404 if ready is None else 200 if ready else 503)

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/readyz/{part}", part)])
    return app


def metrics_app(*registries: CollectorRegistry, scrapers: Scrapers | None = None) -> web.Application:
    """/metrics of all registries in Prometheus' text format, only for callers that `scrapers` accepts, if given."""
    turns = Lanes(1)

    async def metrics(request: web.Request) -> web.Response:
        client = request.remote or ""
        if scrapers is not None:
            verdict = await scrapers.verdict(request.headers.get("Authorization", ""), client)
            if verdict is not GRANTED:
                headers = {"WWW-Authenticate": "Bearer"} if verdict.status == HTTPStatus.UNAUTHORIZED else {}
                return web.Response(status=verdict.status, text=f"{verdict.sentence}\n", headers=headers)
        async with turns.quick_turn(client):
            body = b"".join(generate_latest(registry) for registry in registries)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics)])
    return app


def _json(health: Health, status: int) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(health.report()), content_type="application/json")
