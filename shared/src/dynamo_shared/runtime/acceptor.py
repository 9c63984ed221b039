"""Accepts the connections of a server, a limited number at a time."""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Callable
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
        """Whether no complete request, with its body, has arrived since the last answer or the TLS handshake."""
        if (request := self._current_request) is not None:
            return not request.content.is_eof()
        return not self._messages

    @property
    def received_request(self) -> bool:
        """Whether the connection has had a request."""
        return self._request_count > 0

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is closed."""
        super().connection_lost(exc)
        self.lost.set()


class Acceptor:
    """Accepts connections; at most `most` are open, including those before their TLS handshake.

    Every pod of the cluster may open connections, and needs no token for it. A TLS connection takes 30 to 80 KB before
    its first request. At `most`, a new one closes one that awaits a request, of the client (an address) with the most of
    these: the oldest, preferably of those that never had a request. If none awaits a request, the client with the most
    connections loses its oldest.
    """

    def __init__(self, new_connection: Callable[[], AcceptedConnection], tls: ssl.SSLContext | None, most: int) -> None:
        self._new_connection = new_connection
        self._tls = tls
        self._most = most
        self._open: dict[asyncio.Task[None], tuple[str, AcceptedConnection]] = {}

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
            if len(self._open) >= self._most:
                self._drop_one()
            connection = self._new_connection()
            task = asyncio.create_task(self._serve(accepted, connection))
            self._open[task] = str(address[0]), connection
            task.add_done_callback(lambda task: self._open.pop(task, None))

    async def close(self) -> None:
        """Drop all open connections."""
        await ended(*self._open)

    def _drop_one(self) -> None:
        candidates = [task for task, (_, each) in self._open.items() if each.awaits_request] or list(self._open)
        of_clients = Counter(self._open[task][0] for task in candidates)

        def preference(task: asyncio.Task[None]) -> tuple[int, bool]:
            client, connection = self._open[task]
            return -of_clients[client], connection.received_request

        dropped = min(candidates, key=preference)
        dropped.cancel()
        del self._open[dropped]

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
