"""Work that several callers request at the same time is done once for all of them, and fails once for all of them."""

import asyncio

import pytest
from dynamo_shared.aio import Joined, ended

from tests.building.waiting import turns


class Work:
    """Waits until it may end, and counts its starts."""

    def __init__(self) -> None:
        self.begun = 0
        self.results: list[asyncio.Future[str]] = []

    async def __call__(self) -> str:
        self.begun += 1
        self.results.append(asyncio.get_running_loop().create_future())
        return await self.results[-1]


async def asked(joined: Joined[str, str], work: Work, count: int, key: str = "a") -> list[asyncio.Task[str]]:
    tasks = [asyncio.create_task(joined.result(key, work)) for _ in range(count)]
    await turns()
    return tasks


async def test_all_waiting_callers_get_one_result_and_later_ones_another() -> None:
    joined, work = Joined[str, str](), Work()
    tasks = await asked(joined, work, 3)
    work.results[0].set_result("first")
    assert await asyncio.gather(*tasks) == ["first"] * 3
    later = await asked(joined, work, 1)
    work.results[1].set_result("second")
    assert await later[0] == "second"


async def test_an_error_is_raised_for_all_waiting_callers() -> None:
    joined, work = Joined[str, str](), Work()
    tasks = await asked(joined, work, 3)
    work.results[0].set_exception(OSError("no answer"))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(each) for each in results] == ["no answer"] * 3
    assert work.begun == 1


async def test_other_keys_do_not_wait() -> None:
    joined, work = Joined[str, str](), Work()
    tasks = await asked(joined, work, 1) + await asked(joined, work, 1, "b")
    assert work.begun == 2
    await ended(*tasks)


async def test_if_the_working_caller_is_cancelled_the_next_one_works() -> None:
    joined, work = Joined[str, str](), Work()
    first, *others = await asked(joined, work, 3)
    first.cancel()
    await turns()
    assert work.begun == 2
    work.results[1].set_result("second")
    assert await asyncio.gather(*others) == ["second"] * 2
    assert first.cancelled()


async def test_a_waiting_caller_may_be_cancelled_alone() -> None:
    joined, work = Joined[str, str](), Work()
    first, second, third = await asked(joined, work, 3)
    second.cancel()
    await turns()
    assert second.cancelled()
    work.results[0].set_result("done")
    assert set(await asyncio.gather(first, third)) == {"done"}


async def test_all_may_be_cancelled_at_the_same_moment() -> None:
    joined, work = Joined[str, str](), Work()
    tasks = await asked(joined, work, 3)
    for task in tasks:
        task.cancel()
    await turns()
    assert all(task.cancelled() for task in tasks)
    assert work.begun == 1


async def test_an_error_of_a_single_caller_is_not_reported_as_unhandled() -> None:
    unhandled: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    joined, work = Joined[str, str](), Work()
    (task,) = await asked(joined, work, 1)
    work.results[0].set_exception(OSError("no answer"))
    with pytest.raises(OSError, match="no answer"):
        await task
    del task, work, joined
    await turns()
    assert unhandled == []
