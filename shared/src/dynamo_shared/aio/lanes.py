"""Limits of concurrent work: one client or namespace with much of it delays or refuses only its own."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress


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


class Shares:
    """Counts what is in progress, by client: an address, a network or a user.

    If all places are taken, a client with less than its share of them gets one more. Shares become smaller as clients
    become more, so `total` exceeds the number of places by at most one share of each client that came late.
    """

    def __init__(self) -> None:
        self._taken: Counter[Hashable] = Counter()

    @property
    def total(self) -> int:
        """Places that all clients have."""
        return self._taken.total()

    def count(self, client: Hashable) -> int:
        """Places that a client has."""
        return self._taken[client]

    def is_full(self, client: Hashable, most: int) -> bool:
        """Whether all of `most` places are taken, and this client has its share of them."""
        clients = len(self._taken) + (client not in self._taken)
        return self.total >= most and self._taken[client] * clients >= most

    @contextmanager
    def taken(self, client: Hashable) -> Iterator[None]:
        """A place of this client, while the block runs; check `is_full` before."""
        self._taken[client] += 1
        try:
            yield
        finally:
            self._taken[client] -= 1
            if not self._taken[client]:
                del self._taken[client]
