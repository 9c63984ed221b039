"""A bound on how many do something at once, for those who would rather exceed it than wait for long."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Gate:
    """Lets `count` in at once, in the order in which they came. Who has waited for `longest` seconds goes in all the same."""

    def __init__(self, count: int, longest: float) -> None:
        self._free = asyncio.Semaphore(count)
        self._longest = longest

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        """Inside, for as long as the block runs."""
        is_counted = False
        with suppress(TimeoutError):
            async with asyncio.timeout(self._longest):
                is_counted = await self._free.acquire()
        try:
            yield
        finally:
            if is_counted:
                self._free.release()
