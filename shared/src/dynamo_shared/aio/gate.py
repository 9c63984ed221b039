"""A limit for concurrent work, for callers that would rather exceed it than wait long."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Gate:
    """Lets `count` callers in at once, in order of arrival. After a wait of `longest` seconds a caller enters anyway."""

    def __init__(self, count: int, longest: float) -> None:
        self._free = asyncio.Semaphore(count)
        self._longest = longest

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        """Hold a place while the block runs."""
        is_counted = False
        with suppress(TimeoutError):
            async with asyncio.timeout(self._longest):
                is_counted = await self._free.acquire()
        try:
            yield
        finally:
            if is_counted:
                self._free.release()
