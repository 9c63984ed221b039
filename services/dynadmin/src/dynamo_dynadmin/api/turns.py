"""Turns at what takes long, such as simulations for estimates and replays: fair among callers, and bounded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynamo_dynadmin.http.problems import ProblemError

#: All that waits for its turn; and that of one caller which waits or is worked on. The page begins a simulation for each
#: change of the form, and one that it gave up stays until the next heartbeat.
WAITING, OF_ONE = 64, 16


class CallerSlots:
    """One of a user at once, and some of all users: who asks for many waits for itself alone.

    `what` names them, such as simulations.
    """

    def __init__(self, what: str, at_once: int, waiting: int = WAITING) -> None:
        self._what = what
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
            many = f"{self._users[user]} {self._what} of yours" if own else f"{self._waiting} {self._what}"
            raise ProblemError("too-many-requests", f"{many} wait; retry later", headers={"Retry-After": "5"})
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
