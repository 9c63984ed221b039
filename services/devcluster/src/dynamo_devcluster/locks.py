"""Locks between processes. The kernel releases the locks of a process that ends."""

import asyncio
import contextlib
import fcntl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO

from .errors import LocalClusterError

_POLL_SECONDS = 0.2


@contextlib.asynccontextmanager
async def file_lock(file: Path, waiting: Callable[[], object] = lambda: None) -> AsyncIterator[None]:
    """Wait for the lock of `file`, and hold it during the block. `waiting` is called once if another process holds it.

    The file is not removed: otherwise two processes could hold the lock, each on another file with this name.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        called = False
        while not _try_lock(handle):
            if not called:
                called = True
                waiting()
            await asyncio.sleep(_POLL_SECONDS)
        yield


@contextlib.contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory of state during the block. Raises LocalClusterError if another process holds it."""
    with (directory / "lock").open("a") as handle:
        if not _try_lock(handle):
            raise LocalClusterError(
                f"{directory} is in use by another local cluster; stop that cluster, or choose another folder"
            )
        yield


class ByteLocks:
    """Any number of locks in one file, one byte each (POSIX record locks). A forked child does not inherit them.

    The kernel releases all of them when the process closes any handle of the file: use one instance per file.
    """

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._handle = file.open("a")
        self._held: set[int] = set()

    def take(self, byte: int) -> bool:
        """Take the lock of `byte`; False if this process or another one holds it."""
        if byte in self._held:
            return False
        try:
            fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # POSIX allows both errors.
            return False
        self._held.add(byte)
        return True

    def release(self, byte: int) -> None:
        """Release the lock. Does nothing if this process does not hold it."""
        if byte in self._held:
            self._held.remove(byte)
            fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, byte)


def _try_lock(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
