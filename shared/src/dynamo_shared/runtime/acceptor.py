"""Accepts the connections of a server, a limited number at a time."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from aiohttp import web

from dynamo_shared.aio import ended

#: Time limit for a TLS handshake. Seconds.
HANDSHAKE_WITHIN = 10.0
#: Wait when the system has no more descriptors: other connections must end first. Seconds.
PAUSE = 1.0

log = structlog.get_logger("dynamo.runtime")


class AcceptedConnection(web.RequestHandler):
    """aiohttp's connection, with an event for its end."""

    __slots__ = ("lost",)

    def __init__(self, manager: web.Server, **given: Any) -> None:
        super().__init__(manager, **given)
        self.lost = asyncio.Event()
        """set when the connection is closed"""

    @property
    def awaits_request(self) -> bool:
        """Whether no complete request headers have arrived since the last answer."""
        return self._waiter is not None and not self._waiter.done()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is closed."""
        super().connection_lost(exc)
        self.lost.set()


class Acceptor:
    """Accepts connections; at most `most` are open, including those before their TLS handshake.

    Every pod of the cluster may open connections, and needs no token for it. A TLS connection takes 30 to 80 KB before
    its first request. Above `most`, the client (an address) with the most connections loses one: the oldest that
    awaits a request, or the oldest.
    """

    def __init__(self, new_connection: Callable[[], AcceptedConnection], tls: ssl.SSLContext | None, most: int) -> None:
        self._new_connection = new_connection
        self._tls = tls
        self._most = most
        self._open: dict[str, dict[asyncio.Task[None], AcceptedConnection]] = {}

    async def run(self, listening: socket.socket) -> None:
        """Accept connections until cancelled; those that are open stay."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as error:
                log.warning("cannot accept a connection", error=str(error))
                await asyncio.sleep(PAUSE)
                continue
            connection = self._new_connection()
            self._add(str(address[0]), asyncio.create_task(self._serve(accepted, connection)), connection)

    async def close(self) -> None:
        """Drop all open connections."""
        await ended(*(task for tasks in self._open.values() for task in tasks))

    def _add(self, client: str, task: asyncio.Task[None], connection: AcceptedConnection) -> None:
        self._open.setdefault(client, {})[task] = connection
        task.add_done_callback(partial(self._remove, client))
        if sum(map(len, self._open.values())) > self._most:
            client, tasks = max(self._open.items(), key=lambda each: len(each[1]))
            lost = next((each for each, open_ in tasks.items() if open_.awaits_request), next(iter(tasks)))
            lost.cancel()
            self._remove(client, lost)

    def _remove(self, client: str, task: asyncio.Task[None]) -> None:
        tasks = self._open.get(client, {})
        tasks.pop(task, None)
        if not tasks:
            self._open.pop(client, None)

    async def _serve(self, accepted: socket.socket, connection: AcceptedConnection) -> None:
        loop = asyncio.get_running_loop()
        within = HANDSHAKE_WITHIN if self._tls is not None else None
        try:
            # From here on the socket belongs to the loop, which closes it if the handshake fails or is cancelled.
            transport, _ = await loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=within
            )
        except OSError:
            return  # the client left, or does not speak TLS
        try:
            await connection.lost.wait()
        finally:
            transport.abort()
