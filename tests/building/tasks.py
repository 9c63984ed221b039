"""Tasks that run next to a test."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from dynamo_shared.aio import ended


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Runs work as a task while the block runs; the task has ended after it.

    If the work failed before, its error is raised, because it is the cause of what the block missed.
    """
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        failed = task.done()
        await ended(task)
        if failed and not task.cancelled():
            task.result()
