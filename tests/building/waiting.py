"""Waiting for what other tasks do."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], within: float = 60.0) -> None:
    """Return once a condition holds; TimeoutError where it does not within so many seconds."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.01)


async def turns(count: int = 20) -> None:
    """Let other tasks do what they can do without time to pass."""
    for _ in range(count):
        await asyncio.sleep(0)
