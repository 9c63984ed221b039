"""Turns at work that takes long: a caller with much of it delays only itself."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class Lanes:
    """Lets `of_one` callers of each lane in at a time, and `at_once` of all lanes. A lane is a namespace, a user or a client."""

    def __init__(self, at_once: int, *, of_one: int = 1) -> None:
        self._slots = asyncio.Semaphore(at_once)
        self._of_one = of_one
        self._lanes: dict[Hashable, asyncio.Semaphore] = {}
        self._callers: Counter[Hashable] = Counter()
        self.waiting = 0
        """callers of all lanes that wait"""

    def count(self, lane: Hashable) -> int:
        """Callers of a lane that wait or work."""
        return self._callers[lane]

    @asynccontextmanager
    async def turn(self, lane: Hashable) -> AsyncIterator[None]:
        """A turn, while the block runs."""
        own = self._lanes.setdefault(lane, asyncio.Semaphore(self._of_one))
        self._callers[lane] += 1
        self.waiting += 1
        waits = True
        try:
            async with own, self._slots:
                self.waiting -= 1
                waits = False
                yield
        finally:
            self.waiting -= waits
            self._callers[lane] -= 1
            if not self._callers[lane]:
                del self._callers[lane], self._lanes[lane]

    @asynccontextmanager
    async def quick_turn(self, lane: Hashable) -> AsyncIterator[None]:
        """A turn at work that blocks the event loop for a moment."""
        async with self.turn(lane):
            # Meanwhile others queue. Otherwise a hundred requests that are read together would be worked on together.
            await asyncio.sleep(0)
            yield
