"""Locks between processes. They are kernel locks, so the death of a holder releases them."""

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

    The file stays: if it were removed, two processes could hold "the same" lock on two files.
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
            raise LocalClusterError(
                f"{directory} is in use by another local cluster; stop that cluster, or choose another folder"
            )
        yield


class ByteLocks:
    """Any number of locks in one file, one byte each. This process holds them until it ends or releases them.

    The kernel releases all of them when the process closes the file once, however often it opened it: use one instance
    per file. A forked child has no locks.
    """

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._handle = file.open("a")
        self._taken: set[int] = set()

    def take(self, byte: int) -> bool:
        """Take the lock of `byte`; False if this process or another one holds it."""
        if byte in self._taken:
            return False
        try:
            fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # POSIX allows both answers.
            return False
        self._taken.add(byte)
        return True

    def release(self, byte: int) -> None:
        """Release the lock. Does nothing if this process does not hold it."""
        if byte in self._taken:
            self._taken.remove(byte)
            fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, byte)


def _taken(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
