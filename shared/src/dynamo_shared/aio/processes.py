"""Programs that a service starts: without a line of Python in a forked copy of itself.

uvloop's `create_subprocess_exec` forks, and calls all that libraries registered with `os.register_at_fork` in the child
before it becomes the program. OpenTelemetry starts a thread there, in a copy of a process whose other threads, gRPC's
among them, have stopped wherever they were: such a child may wait or spin without end, and its parent with it.
`subprocess.Popen` without `preexec_fn` calls nothing in the child (CPython, Modules/_posixsubprocess.c).
"""

import asyncio
import contextlib
import functools
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Self

_LINE_LIMIT = 64 * 1024
"""Bytes of a line, as asyncio's own streams have them."""
_POLL = 0.01
"""Seconds. A thread would be one of the few that all share, would outlive who waits, and could learn of the end while `kill`
believes in the number that another program has by then."""


class Process:
    """A program that runs next to this one, with its streams. Leave `async with`, or call `end`: nothing is left of it."""

    def __init__(self, popen: subprocess.Popen[bytes], *, limit: int, own_session: bool) -> None:
        self._popen = popen
        self._own_session = own_session
        self._ends: list[Any] = [popen.stdout, popen.stderr]
        """files, and transports once they are connected: both are closed by `close`"""
        self.stdout = asyncio.StreamReader(limit)
        self.stderr = asyncio.StreamReader(limit)
        self.stdin: asyncio.StreamWriter | None = None
        """None unless it was asked for"""

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        writes: bool = False,
        own_session: bool = False,
        limit: int = _LINE_LIMIT,
    ) -> Self:
        """Start the command; `limit` is the length of a line of its output in bytes.

        `writes` gives it a standard input of its own, to which `stdin` writes. With `own_session`, signals to this
        process's group, such as Ctrl-C, do not reach it, it does not read what this process does, and `kill` ends what it
        has started, too. OSError where it cannot be started.
        """
        near_end, far_end = socket.socketpair() if writes else (None, None)
        with contextlib.ExitStack() as undone:
            if near_end is not None:
                undone.enter_context(near_end)
            with far_end or contextlib.nullcontext():
                popen = subprocess.Popen(  # noqa: S603, ASYNC220 - our own caller's command; returns once it runs
                    command,
                    stdin=far_end.fileno() if far_end is not None else subprocess.DEVNULL if own_session else None,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    env=environ,
                    start_new_session=own_session,
                )
            process = cls(popen, limit=limit, own_session=own_session)
            try:
                await process._connect(near_end)
            except BaseException:
                await process.end()
                raise
            undone.pop_all()
        return process

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._popen.poll() is None

    def kill(self) -> None:
        """End it at once; nothing where its end is known: its number may be another's by then."""
        if self._popen.returncode is None:
            # A group whose leader has ended, and was not waited for, is refused by some systems.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                (os.killpg if self._own_session else os.kill)(self.pid, signal.SIGKILL)

    async def wait(self) -> int:
        """Its exit code once it has ended; negative for a signal. It asks again and again: call it when the end is near."""
        while (code := self._popen.poll()) is None:  # noqa: ASYNC110 - the loop has no event of it
            await asyncio.sleep(_POLL)
        return code

    async def end(self) -> None:
        """Kill it if it runs, and close its streams."""
        self.kill()
        for end in self._ends:
            end.close()
        if self.stdin is not None:
            # What is left to write has no reader any more.
            self.stdin.transport.abort()
        await self.wait()

    async def _connect(self, stdin: socket.socket | None) -> None:
        loop = asyncio.get_running_loop()
        if stdin is not None:
            # A socket, as asyncio itself takes one: a pipe's end to write to cannot be watched everywhere.
            _, self.stdin = await asyncio.open_connection(sock=stdin)
        for place, reader in enumerate((self.stdout, self.stderr)):
            protocol = functools.partial(asyncio.StreamReaderProtocol, reader)
            self._ends[place], _ = await loop.connect_read_pipe(protocol, self._ends[place])
