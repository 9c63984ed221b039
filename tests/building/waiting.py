"""Waiting for what other tasks do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], within: float = 60.0) -> None:
    """Return once a condition holds; TimeoutError where it does not within so many seconds."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.01)
