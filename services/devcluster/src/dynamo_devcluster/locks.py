"""Locks between processes. The kernel's (flock): a holder that is killed leaves them free."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO

from .errors import LocalClusterError

_POLL_SECONDS = 0.2


@contextlib.asynccontextmanager
async def turn(file: Path, waiting: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
    """Wait for the lock of `file` and hold it; `waiting` is called once if another process has it.

    The file stays: removing it would let two processes hold "the same" lock on two files.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        called = False
        while not _taken(handle):
            if not called:
                called = True
                waiting()
            await asyncio.sleep(_POLL_SECONDS)
        yield


@contextlib.contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Be the only user of a directory of state; raises LocalClusterError if another process uses it."""
    with (directory / "lock").open("a") as handle:
        if not _taken(handle):
            raise LocalClusterError(f"{directory} is in use by another local cluster; stop that or choose another one")
        yield


def _taken(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
