"""JSON that is nested deeper than a decoder goes.

Where a schema keeps unknown fields, the API server stores objects of ten thousand levels, and a user who writes one could
stop every reader of the resource. No meaningful object has a tenth of the levels allowed here.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

#: Levels that are read of what the decoder gives up. That is Python's own limit: 1,000 levels in 3.11, for the decoder and for
#: whatever called it together, and some 10,000 from 3.12 on. Up to there a reader meets them, and its own object fails.
MOST_LEVELS = 128

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"

T = TypeVar("T")
Content = bytes | bytearray | memoryview


def bounded(decode: Callable[[Any], T]) -> Callable[[Content], T]:
    """A decoder that reads null in place of what is nested too deeply. Other errors are the decoder's."""

    def decoded(content: Content) -> T:
        try:
            return decode(content)
        except RecursionError:
            return decode(cut(bytes(content)))

    return decoded


def cut(content: bytes, most: int = MOST_LEVELS) -> bytes:
    """JSON with null in place of every object and list that is nested deeper than so many levels."""
    kept: list[bytes] = []
    start = depth = 0
    for token in _TOKEN.finditer(content):
        first = content[token.start()]
        if first in _OPENING:
            depth += 1
            if depth == most + 1:
                kept += (content[start : token.start()], b"null")
        elif first in _CLOSING:
            if depth == most + 1:
                start = token.end()
            depth -= 1
    if depth <= most:
        kept.append(content[start:])
    return b"".join(kept)
