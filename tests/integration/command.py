"""dynamoctl and kubectl as processes."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.building.processes import ending

#: For an answer of a command. Seconds.
WITHIN = 120.0


@asynccontextmanager
async def dynamoctl(*arguments: str, cwd: Path, **environ: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command; it is killed where it has not ended by then."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dynamo_ctl", *arguments,
        cwd=cwd, env={**os.environ, **environ}, stdin=pipe, stdout=pipe, stderr=pipe,
    )  # fmt: skip
    async with ending(process):
        yield process


async def finished(process: asyncio.subprocess.Process, sent: bytes = b"") -> tuple[int, str, str]:
    """Exit code, standard output and standard error; `sent` is its standard input."""
    out, err = await asyncio.wait_for(process.communicate(sent), WITHIN)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def kubectl(program: Path, kubeconfig: Path, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
    """kubectl as a user has it: exit code, standard output and standard error."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        str(program), f"--kubeconfig={kubeconfig}", *arguments, stdin=pipe, stdout=pipe, stderr=pipe
    )
    return await finished(process, stdin.encode())


async def printed(process: asyncio.subprocess.Process, expected: str, *, as_error: bool = False) -> None:
    """Return with the first line that has these words, of standard output or of standard error."""
    stream = process.stderr if as_error else process.stdout
    assert stream is not None
    async with asyncio.timeout(WITHIN):
        async for line in stream:
            if expected in line.decode():
                return
    raise AssertionError(f"it ended without saying {expected!r}: {(await process.communicate())[1].decode()}")
