"""Turns at the simulation, for estimates and replays together: fair among callers, and bounded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynamo_dynadmin.http.problems import ProblemError

#: Simulations that are worked on at once; the worker processes have their own bounds, too.
AT_ONCE = 4
#: Callers' simulations that wait for their turn; and those of one caller that wait or are worked on. The page begins one for
#: each change of the form, and one that it gave up stays until the next heartbeat.
WAITING, OF_ONE = 64, 16


class SimulationSlots:
    """One simulation of a user at once, and some of all users: who asks for many waits for itself alone."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._slots = asyncio.Semaphore(at_once)
        self._users: Counter[str] = Counter()
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting = 0
        self._most = waiting

    @asynccontextmanager
    async def taken(self, user: str) -> AsyncIterator[None]:
        """A turn. ProblemError where too many wait already."""
        own = self._users[user] >= OF_ONE
        if own or self._waiting >= self._most:
            what = f"{self._users[user]} simulations of yours wait" if own else f"{self._waiting} simulations wait"
            raise ProblemError("too-many-requests", f"{what}; retry later", headers={"Retry-After": "5"})
        lock = self._locks.setdefault(user, asyncio.Lock())
        self._users[user] += 1
        self._waiting += 1
        waits = True
        try:
            async with lock, self._slots:
                self._waiting -= 1
                waits = False
                yield
        finally:
            self._waiting -= waits
            self._users[user] -= 1
            if not self._users[user]:
                del self._users[user], self._locks[user]
