"""Handles JSON that is nested too deeply for the decoder.

If a schema keeps unknown fields, the API server stores objects with ten thousand levels, and a user who writes one
could stop every reader of the resource. No meaningful object has a tenth of the levels allowed here.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

#: Number of levels to read if the decoder fails. The decoder has Python's limit: 1,000 levels in 3.11, for the decoder
#: and its callers together, and some 10,000 from 3.12 on. Below that limit, readers get the deep object, and fail only
#: for it.
MOST_LEVELS = 128

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"

T = TypeVar("T")
Content = bytes | bytearray | memoryview


def bounded(decode: Callable[[Any], T]) -> Callable[[Content], T]:
    """A decoder that replaces too deeply nested values by null. Other errors are the decoder's."""

    def decoded(content: Content) -> T:
        try:
            return decode(content)
        except RecursionError:
            return decode(cut(bytes(content)))

    return decoded


def cut(content: bytes, most: int = MOST_LEVELS) -> bytes:
    """JSON in which null replaces every object and list that is nested deeper than `most` levels."""
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
