"""Runs dynamoctl and kubectl as processes, and dynamoctl in the test's own process."""

import asyncio
import io
import os
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

import pytest
import structlog
from dynamo_ctl import cli, interrupts, settings

from tests.building.processes import ending

#: Limit for the answer of a command. Seconds.
WITHIN = 120.0


@asynccontextmanager
async def dynamoctl(*arguments: str, cwd: Path, **environ: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command; it is killed if it has not ended by the end of the block."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dynamo_ctl", *arguments,
        cwd=cwd, env={**os.environ, **environ}, stdin=pipe, stdout=pipe, stderr=pipe,
    )  # fmt: skip
    async with ending(process):
        yield process


async def called(*arguments: str, cwd: Path, **environ: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command in this process: a new one takes a second."""
    logging = structlog.get_config()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        # Only the main thread may handle signals.
        patch.setattr(interrupts, "SIGNALS", ())
        patch.setattr(settings, "configure_logging", _log_from)
        for name, value in environ.items():
            patch.setenv(name, value)
        try:
            return await asyncio.wait_for(asyncio.to_thread(_invoked, arguments), WITHIN)
        finally:
            structlog.configure(**logging)


def _log_from(*, level: str, **_: str) -> None:
    """Set the level of a command; all else stays as the test's services configured it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(level))


class _OfThread(io.StringIO):
    """Collects what its own thread writes. Output of other threads passes through."""

    def __init__(self, others: TextIO) -> None:
        super().__init__()
        self._others = others
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        return super().write(text) if threading.get_ident() == self._thread else self._others.write(text)


def _invoked(arguments: Sequence[str]) -> tuple[int, str, str]:
    with redirect_stdout(_OfThread(sys.stdout)) as out, redirect_stderr(_OfThread(sys.stderr)) as err:
        code = cli.invoke(arguments)
    return code, out.getvalue(), err.getvalue()


async def finished(process: asyncio.subprocess.Process, sent: bytes = b"") -> tuple[int, str, str]:
    """Exit code, standard output and standard error; `sent` is its standard input."""
    out, err = await asyncio.wait_for(process.communicate(sent), WITHIN)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def kubectl(program: Path, kubeconfig: Path, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
    """Run kubectl as a user: exit code, standard output and standard error."""
    pipe = asyncio.subprocess.PIPE
    # It ends before garbage collection pays off.
    environ = {**os.environ, "GOGC": "off"}
    process = await asyncio.create_subprocess_exec(
        str(program), f"--kubeconfig={kubeconfig}", *arguments, env=environ, stdin=pipe, stdout=pipe, stderr=pipe
    )
    return await finished(process, stdin.encode())


async def printed(process: asyncio.subprocess.Process, expected: str) -> None:
    """Return at the first line of standard output with these words."""
    assert process.stdout is not None
    async with asyncio.timeout(WITHIN):
        async for line in process.stdout:
            if expected in line.decode():
                return
    raise AssertionError(f"the command ended without {expected!r}: {(await process.communicate())[1].decode()}")
