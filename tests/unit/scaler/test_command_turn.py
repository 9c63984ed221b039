"""Work that one replica does at a time starts, ends and moves with the ownership of its key."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from dynamo_scaler.commands.turn import Turn
from dynamo_shared.aio import ended
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases.ownership import AllKeys
from dynamo_shared.leases.rendezvous import ALL

from tests.building.tasks import in_background

KEY, OTHER = ObjectKey("", "mine"), ObjectKey("", "other")


class Owned(AllKeys):
    """Ownership that the test controls."""

    def __init__(self, owned: bool) -> None:
        super().__init__()
        self.owned = owned

    def owns(self, key: ObjectKey) -> bool:
        return self.owned and key == KEY

    def give(self) -> None:
        self.owned = True
        self._report_gain(ALL)

    def lose(self) -> None:
        self.owned = False
        self._report_loss()

    async def take_back(self, concerns: Callable[[ObjectKey], bool]) -> None:
        self.owned = self.owned and not concerns(KEY)
        for each in self._drainers:
            await each(concerns)


class Work:
    """Work that counts its starts and ends."""

    def __init__(self) -> None:
        self.begun = self.ended = 0
        self.began = asyncio.Event()
        self.fails: Exception | None = None
        #: What it closes at its end may already be closed.
        self.closing = asyncio.Event()
        self.closing.set()

    async def run(self) -> None:
        self.begun += 1
        self.began.set()
        try:
            if self.fails is not None:
                raise self.fails
            await asyncio.Event().wait()
        finally:
            await self.closing.wait()
            self.ended += 1

    async def until_begun(self) -> None:
        async with asyncio.timeout(60):
            await self.began.wait()
        self.began.clear()


@asynccontextmanager
async def turns(owned: Owned) -> AsyncIterator[Work]:
    work = Work()
    async with in_background(Turn(owned, KEY, work.run).run()):
        yield work
    assert work.begun == work.ended


async def test_work_starts_when_the_key_is_gained_and_ends_when_it_is_lost() -> None:
    owned = Owned(False)
    async with turns(owned) as work:
        await asyncio.sleep(0)
        assert work.begun == 0
        owned.give()
        await work.until_begun()
        owned.lose()
        owned.give()
        await work.until_begun()
        assert work.begun == 2


async def test_work_ends_before_the_key_is_given_away() -> None:
    owned = Owned(True)
    async with turns(owned) as work:
        await work.until_begun()
        await owned.take_back(lambda key: key == OTHER)
        assert work.ended == 0
        await owned.take_back(lambda key: key == KEY)
        assert work.ended == 1
        owned.give()
        await work.until_begun()


async def test_the_cleanup_of_the_work_is_awaited_and_not_cancelled() -> None:
    owned = Owned(True)
    async with turns(owned) as work:
        await work.until_begun()
        work.closing.clear()
        owned.lose()
        given_away = asyncio.create_task(owned.take_back(lambda key: key == KEY))
        for _ in range(10):
            await asyncio.sleep(0)
        assert (work.ended, given_away.done()) == (0, False)
        work.closing.set()
        async with asyncio.timeout(10):
            await given_away
        assert work.ended == 1


async def test_a_single_replica_always_works() -> None:
    work = Work()
    task = asyncio.create_task(Turn(AllKeys(), KEY, work.run).run())
    await work.until_begun()
    await ended(task)
    assert (work.begun, work.ended) == (1, 1)


async def test_an_error_of_the_work_is_raised() -> None:
    work = Work()
    work.fails = RuntimeError("broken")
    with pytest.raises(RuntimeError, match="broken"):
        async with asyncio.timeout(60):
            await Turn(AllKeys(), KEY, work.run).run()
