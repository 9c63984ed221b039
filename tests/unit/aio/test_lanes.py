"""A gate lets a limited number in at once, in order; who has all of the places leaves one to others."""

import asyncio
from contextlib import ExitStack

from dynamo_shared.aio import Gate, Shares

from tests.building.waiting import turns


class Work:
    """Records who is inside; all leave together."""

    def __init__(self, gate: Gate) -> None:
        self.gate, self.inside, self.over = gate, list[int](), asyncio.Event()

    async def run(self, number: int) -> None:
        async with self.gate.passed():
            self.inside.append(number)
            await self.over.wait()


async def test_a_limited_number_is_inside_at_once() -> None:
    work = Work(Gate(2, longest=60))
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(work.run(number)) for number in range(4)]
        await turns()
        assert work.inside == [0, 1]
        running[0].cancel()
        await turns()
        assert work.inside == [0, 1, 2]
        work.over.set()
    assert work.inside == [0, 1, 2, 3]


async def test_a_caller_that_has_waited_for_long_enters_anyway() -> None:
    work = Work(Gate(1, longest=0.01))
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(60):
        for number in range(3):
            tasks.create_task(work.run(number))
        while len(work.inside) < 3:
            await asyncio.sleep(0.005)
        work.over.set()
    async with work.gate.passed():
        pass


def test_a_client_alone_may_have_all_places_and_others_still_get_their_share() -> None:
    shares = Shares()
    with ExitStack() as held:
        for _ in range(4):
            assert not shares.is_full("many", 4)
            held.enter_context(shares.taken("many"))
        assert shares.is_full("many", 4)
        for count in range(2):
            assert (shares.count("other"), shares.is_full("other", 4)) == (count, False)
            held.enter_context(shares.taken("other"))
        assert shares.is_full("other", 4)
        assert shares.total == 6
    assert shares.total == 0
    assert not shares.is_full("many", 1)
