"""A gate: a limited number at once, in order, and no one waits for long."""

import asyncio

from dynamo_shared.aio import Gate

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
