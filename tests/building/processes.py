"""Programs that run next to a test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def ending(process: asyncio.subprocess.Process) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that has ended after the block; it is killed if it has not ended by itself."""
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
