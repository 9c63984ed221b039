"""Concurrent tasks have ended when the function that started them returns, however it returns."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from dynamo_shared import aio
from dynamo_shared.aio import EndedByItselfError, all_of, both, cancellable, either, merged, while_held

from tests.building.waiting import turns, until


class Endless:
    """Work that waits until cancelled, and records the cancellation."""

    def __init__(self) -> None:
        self.begun, self.over = asyncio.Event(), False

    async def run(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.over = True


class Claim:
    def __init__(self) -> None:
        self.lost = asyncio.Event()

    async def wait_lost(self) -> None:
        await self.lost.wait()


async def value(result: int) -> int:
    return result


async def fail(text: str) -> int:
    raise ValueError(text)


async def test_all_results_are_in_order():
    assert await all_of([value(1), value(2)]) == [1, 2]


async def test_results_of_different_types_are_in_order_and_the_first_starts_first():
    order: list[str] = []

    async def number() -> int:
        order.append("number")
        await asyncio.sleep(0)
        return 1

    async def text() -> str:
        order.append("text")
        return "a"

    assert await both(number(), text()) == (1, "a")
    assert order == ["number", "text"]


async def test_the_first_error_is_raised_after_all_have_ended():
    late = asyncio.Event()

    async def last() -> int:
        await asyncio.sleep(0)
        late.set()
        raise ValueError("second")

    with pytest.raises(ValueError, match="first"):
        await all_of([fail("first"), last()])
    assert late.is_set()


async def test_the_first_result_counts_and_the_other_task_is_cancelled():
    endless = Endless()

    async def first() -> None:
        await endless.begun.wait()

    await either(first(), endless.run())
    assert endless.over


async def test_an_error_of_the_first_task_that_ends_is_raised():
    endless = Endless()

    async def first() -> None:
        await endless.begun.wait()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await either(endless.run(), first())
    assert endless.over


async def test_cancelling_ends_both():
    one, other = Endless(), Endless()
    task = asyncio.ensure_future(either(one.run(), other.run()))
    await one.begun.wait()
    await other.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert one.over
    assert other.over


async def test_work_ends_when_its_precondition_is_lost():
    claim, endless = Claim(), Endless()
    task = asyncio.ensure_future(while_held(claim, endless.run()))
    await endless.begun.wait()
    claim.lost.set()
    await task
    assert endless.over


async def test_an_error_of_the_work_is_raised():
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await while_held(Claim(), work())


async def test_an_error_during_the_cancellation_is_raised():
    claim, begun = Claim(), asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            raise ValueError("cannot end")

    task = asyncio.ensure_future(while_held(claim, work()))
    await begun.wait()
    claim.lost.set()
    with pytest.raises(ValueError, match="cannot end"):
        await task


@pytest.mark.parametrize("result", [None, ValueError("failed")])
async def test_a_cancellation_is_not_lost_if_the_result_arrives_at_the_same_moment(result: Exception | None) -> None:
    """asyncio.wait_for of Python 3.11 returns the result then, and the task would continue."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def waits() -> None:
        await asyncio.wait_for(future, 10)

    async def works() -> None:
        while True:
            await cancellable(waits())

    task = asyncio.create_task(works())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if result is None:
        future.set_result(None)
    else:
        future.set_exception(result)
    task.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait({task})
    assert task.cancelled()


async def test_a_timeout_inside_the_task_is_not_the_timeout_of_the_task() -> None:
    async def waits() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(10)
        except TimeoutError:
            return "late"
        return "in time"

    assert await cancellable(waits()) == "late"


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (None, "EndedByItselfError('it ended by itself')"),
        (asyncio.CancelledError(), "EndedByItselfError('it was cancelled from inside')"),
        (ValueError("broken"), "ValueError('broken')"),
    ],
    ids=repr,
)
async def test_an_unexpected_end_raises_its_cause(error: BaseException | None, raised: str):
    async def work() -> None:
        if error is not None:
            raise error

    with pytest.raises((EndedByItselfError, ValueError)) as caught:
        await aio.endless(work())
    assert repr(caught.value) == raised


async def test_endless_work_may_be_cancelled():
    endless = Endless()
    task = asyncio.ensure_future(aio.endless(endless.run()))
    await endless.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert endless.over


class Source:
    """Yields its items until None or an error, and records that it was closed."""

    def __init__(self, *items: int | Exception | None) -> None:
        self.queue: asyncio.Queue[int | Exception | None] = asyncio.Queue()
        self.is_closed = False
        for item in items:
            self.queue.put_nowait(item)

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            while (item := await self.queue.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.is_closed = True


async def taken(items: AsyncGenerator[int, None], count: int) -> list[int]:
    async with asyncio.timeout(60):
        return [await anext(items) for _ in range(count)]


async def test_items_of_the_second_do_not_wait_for_the_first() -> None:
    first, second = Source(1), Source(11, 12)
    async with aclosing(merged(first.items(), second.items())) as items:
        assert sorted(await taken(items, 3)) == [1, 11, 12]
        first.queue.put_nowait(2)
        assert await taken(items, 1) == [2]
        first.queue.put_nowait(None)
        second.queue.put_nowait(13)
        assert await taken(items, 1) == [13]
    assert (first.is_closed, second.is_closed) == (True, True)


@pytest.mark.parametrize("end", [None, ValueError()])
async def test_the_end_of_the_second_waits_for_the_end_of_the_first(end: ValueError | None) -> None:
    first, second = Source(1), Source(11, end)
    async with aclosing(merged(first.items(), second.items())) as items:
        assert sorted(await taken(items, 2)) == [1, 11]
        waiting = asyncio.ensure_future(taken(items, 1))
        await until(lambda: second.is_closed)
        await turns()
        assert not waiting.done()
        first.queue.put_nowait(2)
        assert await waiting == [2]
        first.queue.put_nowait(None)
        with pytest.raises(ValueError if end else StopAsyncIteration):
            await taken(items, 1)


async def test_an_error_of_the_first_is_raised_at_once_and_closes_both() -> None:
    first, second = Source(1, ValueError("over")), Source()
    items = merged(first.items(), second.items())
    assert await taken(items, 1) == [1]
    with pytest.raises(ValueError, match="over"):
        await taken(items, 1)
    assert (first.is_closed, second.is_closed) == (True, True)


async def test_closing_it_while_it_waits_closes_both() -> None:
    first, second = Source(1), Source()
    async with aclosing(merged(first.items(), second.items())) as items:
        assert await taken(items, 1) == [1]
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert (first.is_closed, second.is_closed) == (True, True)
