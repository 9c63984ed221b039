"""One request, and its whole answer, over a connection that aiohttp opens, keeps and parses.

It does without aiohttp's session, whose request, response and task for the body take two fifths of the processor time of
a small request.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple

import aiohttp
from aiohttp.http import HttpProcessingError, StreamWriter
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

SWITCHING_PROTOCOLS = 101
"""The only status below 200 that is not followed by another answer."""


class Answer(NamedTuple):
    """An answer; `content` is None if it is larger than requested."""

    status: int
    headers: CIMultiDictProxy[str]
    content: bytes | None


class Exchanges:
    """Requests to one server, over the connections of `connector`, perhaps through a proxy.

    `buffer`: bytes of an answer that arrive ahead of their reader. Raises aiohttp.ClientError and OSError.
    """

    def __init__(
        self,
        connector: aiohttp.BaseConnector,
        server: str,
        *,
        connect_seconds: float,
        buffer: int,
        proxy: URL | None = None,
        server_hostname: str | None = None,
    ) -> None:
        self._connector = connector
        self._server = URL(server)
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._buffer = buffer
        self._proxy = proxy
        self._server_hostname = server_hostname
        # A proxy gets the whole URL, unless the connection is a tunnel through it.
        whole = proxy is not None and self._server.scheme == "http"
        self._prefix = server.rstrip("/") if whole else self._server.raw_path.rstrip("/")
        self._peer: aiohttp.ClientRequest | None = None

    async def close(self) -> None:
        """Close all connections."""
        await self._connector.close()

    async def ask(
        self,
        method: str,
        target: str,
        headers: CIMultiDict[str],
        body: bytes | None,
        *,
        tls: ssl.SSLContext | bool,
        most: int,
        before: Callable[[], None],
    ) -> Answer:
        """Send a request, and read at most `most` bytes of content. `before` is called last, and may raise.

        `target`: path and query, percent-encoded. `headers` get those that belong to the connection and the body.
        """
        peer = self._peer_by(tls)
        try:
            connection = await self._connector.connect(peer, [], self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {self._server}") from error
        try:
            protocol = connection.protocol
            assert protocol is not None
            before()
            protocol.set_response_params(auto_decompress=False, read_bufsize=self._buffer)
            writer = StreamWriter(protocol, asyncio.get_running_loop())
            self._complete(headers, peer, body)
            await writer.write_headers(f"{method} {self._prefix}{target} HTTP/1.1", headers)
            await writer.write_eof(body or b"")
            message, payload = await protocol.read()
            while message.code < 200 and message.code != SWITCHING_PROTOCOLS:
                message, payload = await protocol.read()
            content = await content_of(payload, message.headers, most)
        except HttpProcessingError as error:
            connection.close()
            raise aiohttp.ClientPayloadError(error.message) from error
        except BaseException:
            connection.close()
            raise
        if content is None:
            connection.close()
        else:
            connection.release()
        return Answer(message.code, message.headers, content)

    def _peer_by(self, tls: ssl.SSLContext | bool) -> aiohttp.ClientRequest:
        """The server as the connector knows it: connections of another TLS context are not used."""
        peer = self._peer
        if peer is None or peer.ssl is not tls:
            peer = self._peer = aiohttp.ClientRequest(
                "GET",
                self._server,
                loop=asyncio.get_running_loop(),
                proxy=self._proxy,
                ssl=tls,
                server_hostname=self._server_hostname,
            )
        return peer

    @staticmethod
    def _complete(headers: CIMultiDict[str], peer: aiohttp.ClientRequest, body: bytes | None) -> None:
        headers["Host"] = peer.headers["Host"]
        headers.setdefault("Accept", "application/json")
        # Compressed answers cost both sides more CPU than they save time on the network.
        headers["Accept-Encoding"] = "identity"
        if body is not None:
            headers["Content-Length"] = str(len(body))
        if (password := peer.headers.get("Proxy-Authorization")) is not None:
            headers["Proxy-Authorization"] = password


async def content_of(payload: aiohttp.StreamReader, headers: CIMultiDictProxy[str], most: int) -> bytes | None:
    """The whole content of an answer; None if it has more than `most` bytes, of which the rest is not read."""
    length = headers.get("Content-Length")
    if length is not None:
        return await payload.read() if int(length) <= most else None
    chunks: list[bytes] = []
    size = 0
    async for chunk in payload.iter_any():
        size += len(chunk)
        if size > most:
            return None
        chunks.append(chunk)
    return b"".join(chunks)
