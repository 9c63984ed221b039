"""A server as a child process: it is probed until ready, can be stopped or killed, and ends with this process (Linux).

A process is not bound to an event loop: a test with its own loop can restart a process of a session-wide fixture.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from .errors import LocalClusterError, NotReadyError, ProcessDiedError

Probe = Callable[[], Awaitable[bool]]
"""Returns whether the server is ready. An OSError means "not yet", with the reason."""

QUOTED_LOG_LINES = 8
QUOTED_BYTES = 64 << 10
_POLL_SECONDS = 0.03
#: The interval of probes grows up to this, because a TLS handshake for each probe would slow the start of a server.
_LAST_POLL_SECONDS = 0.3
LAUNCHER = Path(__file__).with_name("launch.py")


def _dies_with_parent(command: Sequence[str]) -> list[str]:
    """The command, with a launcher by which it ends when this process ends; unchanged on systems without that."""
    if not sys.platform.startswith("linux"):
        return list(command)
    # Without environment variables (-I) and site-packages (-S), the interpreter starts in 10 ms.
    return [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), *command]


#: Servers are ready within seconds; on a busy machine one took more than a minute. Seconds.
READY_WITHIN = 180.0


class ManagedProcess:
    """One server process with its log file.

    `ready` is called after each start until it returns True, for at most `ready_within` seconds. On Linux the kernel
    ends the process when the thread that started it ends: start it from a long-lived thread.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        ready: Probe | None = None,
        *,
        ready_within: float = READY_WITHIN,
        stop_within: float = 10.0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = [str(part) for part in command]
        self.log = log
        self._ready = ready
        self._ready_within = ready_within
        self._stop_within = stop_within
        self._environ = environ
        self._popen: subprocess.Popen[bytes] | None = None
        self._desired = False
        """whether it should run: `start` was called, and neither `stop` nor `kill` since"""

    @property
    def running(self) -> bool:
        """Whether the process exists (ready or not)."""
        return self._popen is not None and self._popen.poll() is None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._popen.pid if self._popen is not None and self.running else None

    @property
    def exit_code(self) -> int | None:
        """Exit code of the last run; negative for a signal, None while running or before the first start."""
        return None if self._popen is None else self._popen.poll()

    @property
    def exited(self) -> bool:
        """Whether it has ended without `stop` or `kill`, or could not be started."""
        return self._desired and not self.running

    @property
    def exit_description(self) -> str:
        """A description of the end of the last run: `ended with exit code 1`, `was ended by SIGKILL`."""
        code = self.exit_code
        if code is not None and code < 0:
            return f"was ended by {_signal_name(-code)}"
        return f"ended with exit code {code}"

    async def start(self) -> None:
        """Start and wait until ready. Does nothing if it runs. Raises LocalClusterError; then no process is left."""
        self._desired = True
        if self.running:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        begins_at = self.log.stat().st_size if self.log.exists() else 0
        program = shutil.which(self.command[0])
        if program is None:
            raise LocalClusterError(
                f"{self.name} cannot be started: {self.command[0]} does not exist or is not executable"
            )
        with self.log.open("ab") as log:
            try:
                self._popen = subprocess.Popen(  # noqa: S603, ASYNC220 - our own command; returns at once
                    _dies_with_parent([program, *self.command[1:]]),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=None if self._environ is None else dict(self._environ),
                    # Ctrl-C reaches only this process, which stops servers in their order.
                    start_new_session=True,
                )
            except OSError as error:
                raise LocalClusterError(f"{self.name} cannot be started: {error}") from error
        # Reaps the process immediately when it ends, for any reason.
        threading.Thread(target=self._popen.wait, name=f"reap-{self.name}", daemon=True).start()
        try:
            await self._until_ready(begins_at)
        except BaseException:
            await self._killed()
            raise

    async def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after `stop_within` seconds. Does nothing if it does not run."""
        self._desired = False
        self._signal(signal.SIGCONT)  # A suspended process would not see TERM.
        self._signal(signal.SIGTERM)
        try:
            if not await self._gone(self._stop_within):
                await self.kill()
        except BaseException:
            self._signal(signal.SIGKILL)
            raise

    async def kill(self) -> None:
        """Send SIGKILL, to simulate a crash or a lost machine."""
        self._desired = False
        await self._killed()

    async def restart(self) -> None:
        """Stop, then start."""
        await self.stop()
        await self.start()

    async def suspend(self) -> None:
        """Send SIGSTOP and wait until all threads have stopped: connections stay open, but it does not answer."""
        self._signal(signal.SIGSTOP)
        # The kernel stops the threads one by one; until the last one has stopped, the process may still answer.
        await self._until(lambda: (pid := self.pid) is None or _is_stopped(pid), self._stop_within)

    def resume(self) -> None:
        """Resume a suspended process."""
        self._signal(signal.SIGCONT)

    def log_tail(self, lines: int = QUOTED_LOG_LINES, begins_at: int = 0) -> str:
        """The last lines of the log, from byte `begins_at` on."""
        try:
            with self.log.open("rb") as log:
                # A server that ran for days may have a log of gigabytes.
                log.seek(max(begins_at, log.seek(0, os.SEEK_END) - QUOTED_BYTES))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    async def _until_ready(self, begins_at: int) -> None:
        deadline, why, pause = time.monotonic() + self._ready_within, "", _POLL_SECONDS
        while True:
            if not self.running:
                raise ProcessDiedError(
                    f"{self.name} {self.exit_description} before it was ready; "
                    f"the end of {self.log}:\n{self.log_tail(begins_at=begins_at)}"
                )
            try:
                if self._ready is None or await self._ready():
                    return
            except OSError as error:
                why = f" ({error})"
            if time.monotonic() > deadline:
                raise NotReadyError(
                    f"{self.name} was not ready after {self._ready_within:.0f} s{why}; "
                    f"the end of {self.log}:\n{self.log_tail(begins_at=begins_at)}"
                )
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, _LAST_POLL_SECONDS)

    async def _killed(self) -> None:
        self._signal(signal.SIGKILL)
        await self._gone(self._stop_within)

    async def _gone(self, within: float) -> bool:
        return await self._until(lambda: not self.running, within)

    @staticmethod
    async def _until(holds: Callable[[], bool], within: float) -> bool:
        deadline = time.monotonic() + within
        while not holds():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self._popen is not None:
            self._popen.send_signal(number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # A real-time signal has no name.
        return f"signal {number}"


def _is_stopped(pid: int) -> bool:
    """Whether a stop signal has stopped all threads of a child."""
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False  # The process has ended.
