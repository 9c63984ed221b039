"""Reads standard input line by line, in a way that Ctrl-C can interrupt.

A thread that reads a line cannot be cancelled, and a process waits for its threads.
"""

import asyncio
import os
from collections.abc import AsyncGenerator

_CHUNK = 1 << 16


async def lines(file: int) -> AsyncGenerator[str]:
    """Yields the lines of a file descriptor while they arrive, without their line breaks."""
    rest = b""
    while True:
        await _readable(file)
        chunk = os.read(file, _CHUNK)
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole if chunk else [rest]:
            yield line.decode("utf-8", "replace").rstrip("\r")
        if not chunk:
            return


async def _readable(file: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(file, ready.set)
    except PermissionError:
        # A file on a disk is always readable.
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)
