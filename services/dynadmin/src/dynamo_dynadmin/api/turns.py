"""Limits expensive work across requests: turns for simulations, concurrency for logs and chats."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from dynamo_shared.aio import Lanes, Shares

from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.identity.who import whose_limit

#: Work that waits for its turn in total, and work of one caller that waits or runs. The page begins a simulation for
#: each change of the form, and an abandoned one stays until the next heartbeat.
WAITING, OF_ONE = 64, 16
#: Seconds.
RETRY_AFTER = 5


class CallerSlots:
    """Runs one task of a user at a time, and a limited number for all users: a user with many tasks delays only
    themselves.

    `what` names the tasks, for example simulations.
    """

    def __init__(self, what: str, at_once: int, waiting: int = WAITING) -> None:
        self._what = what
        self._lanes = Lanes(at_once)
        self._most = waiting

    @asynccontextmanager
    async def taken(self, user: str) -> AsyncIterator[None]:
        """A turn. ProblemError if too many tasks already wait."""
        lanes = self._lanes
        own = lanes.count(user) >= OF_ONE
        if own or lanes.waiting >= self._most:
            many = f"{lanes.count(user)} {self._what} {whose_limit(user)}" if own else f"{lanes.waiting} {self._what}"
            raise ProblemError("too-many-requests", f"{many} are waiting; retry later", retry_after=RETRY_AFTER)
        async with lanes.turn(user):
            yield


class ConcurrencyLimit:
    """Limits the concurrent tasks of one user, and of all users of this replica: further ones must be retried later.

    `what` names the tasks, for example chats.
    """

    def __init__(self, what: str, *, of_a_user: int, total: int) -> None:
        self._what = what
        self._of_a_user, self._total = of_a_user, total
        self._users = Shares()

    @contextmanager
    def taken(self, user: str) -> Iterator[None]:
        """One task, while the block runs. ProblemError if there are already too many."""
        if self._users.count(user) >= self._of_a_user:
            many = f"{self._of_a_user} {self._what} {whose_limit(user)}"
            detail = f"{many} are in progress, the limit of a user; wait for one to end"
            raise ProblemError("too-many-requests", detail, retry_after=RETRY_AFTER)
        if self._users.total >= self._total:
            detail = f"{self._total} {self._what} are in progress, the limit of all users; retry later"
            raise ProblemError("too-many-requests", detail, retry_after=RETRY_AFTER)
        with self._users.taken(user):
            yield
