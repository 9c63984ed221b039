"""Tasks that run next to a test."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from dynamo_shared.aio import ended


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Runs work while the block runs, as a task that has ended after it.

    Work that had failed by then raises its error: what the block waited for in vain has that cause.
    """
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        failed = task.done()
        await ended(task)
        if failed and not task.cancelled():
            task.result()
