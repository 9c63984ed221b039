"""What waits for the reader of a connection with TLS is known, and bounded below."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

#: Bytes that TLS takes at once, and of which it wants no more while so many wait in it.
PIECE = 64 * 1024


class PacedTransport:
    """A transport with TLS that is given what is written in pieces, and no more than it can pass on.

    asyncio's TLS, and uvloop's, pass an answer of any size on at once to the connection below them. What waits there they neither
    report nor pause for: no reader would be waited for, and none cut off.
    """

    def __init__(self, tls: asyncio.Transport) -> None:
        tls.set_write_buffer_limits(high=PIECE)
        self._tls = tls
        self._waiting: deque[memoryview] = deque()
        self._size = 0
        self._closing = False
        self.full = False
        """whether TLS has paused its writer"""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tls, name)

    def write(self, content: bytes) -> None:
        """Send, now or later."""
        if content:
            self._waiting.append(memoryview(content))
            self._size += len(content)
            self.send()

    def writelines(self, contents: Iterable[bytes]) -> None:
        """The same."""
        self.write(b"".join(contents))

    def send(self) -> None:
        """Give TLS what waits, until it is full."""
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
        """Bytes that wait."""
        return self._size + self._tls.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Whether it is closed, or will be once all is sent."""
        return self._closing or self._tls.is_closing()

    def close(self) -> None:
        """Close once all is sent."""
        self._closing = True
        self.send()

    def abort(self) -> None:
        """Close at once."""
        self._waiting.clear()
        self._size = 0
        self._tls.abort()
