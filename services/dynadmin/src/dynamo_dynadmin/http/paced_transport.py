"""Makes the bytes that wait for the reader of a TLS connection known and bounded."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

#: Size of a piece, and the number of buffered bytes from which TLS accepts no more.
PIECE = 64 * 1024


class PacedTransport:
    """A TLS transport that receives data in pieces, and no more than it can pass on.

    The TLS of asyncio and of uvloop passes an answer of any size at once to the connection below. It neither reports
    the bytes that wait there nor pauses for them: the server would neither wait for a slow reader nor disconnect one.
    """

    def __init__(self, tls: asyncio.Transport) -> None:
        tls.set_write_buffer_limits(high=PIECE)
        self._tls = tls
        self._waiting: deque[memoryview] = deque()
        self._size = 0
        self._closing = False
        self.full = False
        """whether TLS paused its writer"""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tls, name)

    def write(self, content: bytes) -> None:
        """Send now, or queue."""
        if content:
            self._waiting.append(memoryview(content))
            self._size += len(content)
            self.send()

    def writelines(self, contents: Iterable[bytes]) -> None:
        """Send all contents as one."""
        self.write(b"".join(contents))

    def send(self) -> None:
        """Give queued data to TLS until its buffer is full."""
        while self._waiting and not self.full:
            first = self._waiting.popleft()
            piece, rest = first[:PIECE], first[PIECE:]
            if rest:
                self._waiting.appendleft(rest)
            self._size -= len(piece)
            self._tls.write(piece)
        if self._closing and not self._waiting:
            self._tls.close()

    def get_write_buffer_size(self) -> int:
        """Bytes that wait to be sent."""
        return self._size + self._tls.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Whether the transport is closed, or will be when all is sent."""
        return self._closing or self._tls.is_closing()

    def close(self) -> None:
        """Close when all is sent."""
        self._closing = True
        self.send()

    def abort(self) -> None:
        """Close at once, and drop queued data."""
        self._waiting.clear()
        self._size = 0
        self._tls.abort()
