"""Turns at work that takes long: a caller with much of it delays only itself."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Lanes:
    """Lets one caller of each lane in at a time, and `at_once` of all lanes. A lane is a namespace, or a user."""

    def __init__(self, at_once: int) -> None:
        self._slots = asyncio.Semaphore(at_once)
        self._locks: dict[str, asyncio.Lock] = {}
        self._callers: Counter[str] = Counter()
        self.waiting = 0
        """callers of all lanes that wait"""

    def count(self, lane: str) -> int:
        """Callers of a lane that wait or work."""
        return self._callers[lane]

    @asynccontextmanager
    async def turn(self, lane: str) -> AsyncIterator[None]:
        """A turn, while the block runs."""
        lock = self._locks.setdefault(lane, asyncio.Lock())
        self._callers[lane] += 1
        self.waiting += 1
        waits = True
        try:
            async with lock, self._slots:
                self.waiting -= 1
                waits = False
                yield
        finally:
            self.waiting -= waits
            self._callers[lane] -= 1
            if not self._callers[lane]:
                del self._callers[lane], self._locks[lane]
