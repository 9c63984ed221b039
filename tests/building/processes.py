"""Programs that run next to a test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def ending(process: asyncio.subprocess.Process, grace: float = 0.0) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that has ended after the block: killed, or with a grace asked to end, and killed so many seconds later."""
    try:
        yield process
    finally:
        if grace and process.returncode is None:
            process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), grace)
        if process.returncode is None:
            process.kill()
            await process.wait()
