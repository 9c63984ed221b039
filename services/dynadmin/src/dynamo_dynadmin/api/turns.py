"""Turns at the simulation, for estimates and replays together: fair among callers, and bounded."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynamo_dynadmin.http.problems import ProblemError

#: Simulations that are worked on at once; the worker processes have their own bounds, too.
AT_ONCE = 4
#: Callers' simulations that wait for their turn.
WAITING = 64


class SimulationSlots:
    """One simulation of a user at once, and some of all users: who asks for many waits for itself alone."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._slots = asyncio.Semaphore(at_once)
        self._users: defaultdict[str, list[int]] = defaultdict(lambda: [0])
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting = 0
        self._most = waiting

    @asynccontextmanager
    async def taken(self, user: str) -> AsyncIterator[None]:
        """A turn. ProblemError where too many wait already."""
        if self._waiting >= self._most:
            raise ProblemError(
                "too-many-requests", f"{self._waiting} simulations wait; retry later", headers={"Retry-After": "5"}
            )
        lock = self._locks.setdefault(user, asyncio.Lock())
        self._users[user][0] += 1
        self._waiting += 1
        waits = True
        try:
            async with lock, self._slots:
                self._waiting -= 1
                waits = False
                yield
        finally:
            self._waiting -= waits
            self._users[user][0] -= 1
            if not self._users[user][0]:
                del self._users[user], self._locks[user]
