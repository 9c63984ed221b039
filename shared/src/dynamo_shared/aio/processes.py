"""Child processes that run no Python in a forked copy of the service.

uvloop's `create_subprocess_exec` forks, and in the child it calls everything that libraries registered with
`os.register_at_fork` before it becomes the program. OpenTelemetry starts a thread there, in a copy of a process whose
other threads, including gRPC's, have stopped at arbitrary points: such a child may wait or spin without end, and so may
its parent. `subprocess.Popen` without `preexec_fn` calls nothing in the child (CPython, Modules/_posixsubprocess.c).
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
"""Bytes of a line, like the limit of asyncio's own streams."""
_POLL = 0.01
"""Seconds between polls. A waiting thread would occupy one of the few shared threads, would outlive its caller, and
could learn of the end while `kill` still uses a process id that already belongs to another program.
"""


class Process:
    """A child process with its streams. Leave `async with`, or call `end`, to remove it completely."""

    def __init__(self, popen: subprocess.Popen[bytes], *, limit: int, own_session: bool) -> None:
        self._popen = popen
        self._own_session = own_session
        self._ends: list[Any] = [popen.stdout, popen.stderr]
        """files, or transports after they are connected: `close` works for both"""
        self.stdout = asyncio.StreamReader(limit)
        self.stderr = asyncio.StreamReader(limit)
        self.stdin: asyncio.StreamWriter | None = None
        """None unless requested"""

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
        """Start the command; `limit` is the maximum length of an output line in bytes.

        `writes` gives it a standard input, to which `stdin` writes. With `own_session`, it does not get signals to this
        process's group, such as Ctrl-C, it does not read this process's standard input, and `kill` also ends its child
        processes. Raises OSError if it cannot be started.
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
        """End it at once; does nothing if its end is known, because its id may belong to another process by then."""
        if self._popen.returncode is None:
            # Some systems refuse to signal a group whose leader has ended but was not waited for.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                (os.killpg if self._own_session else os.kill)(self.pid, signal.SIGKILL)

    async def wait(self) -> int:
        """Its exit code after it has ended; negative for a signal. This polls: call it when the end is near."""
        while (code := self._popen.poll()) is None:  # noqa: ASYNC110 - the loop has no event of it
            await asyncio.sleep(_POLL)
        return code

    async def end(self) -> None:
        """Kill it if it runs, and close its streams."""
        self.kill()
        for end in self._ends:
            end.close()
        if self.stdin is not None:
            # The remaining output to it no longer has a reader.
            self.stdin.transport.abort()
        await self.wait()

    async def _connect(self, stdin: socket.socket | None) -> None:
        loop = asyncio.get_running_loop()
        if stdin is not None:
            # A socket, as in asyncio itself: the write end of a pipe cannot be watched on every system.
            _, self.stdin = await asyncio.open_connection(sock=stdin)
        for place, reader in enumerate((self.stdout, self.stderr)):
            protocol = functools.partial(asyncio.StreamReaderProtocol, reader)
            self._ends[place], _ = await loop.connect_read_pipe(protocol, self._ends[place])
