"""Two generators read as one: items of the second do not wait for the first, but its end does."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from dynamo_shared.aio import merged

from tests.building.waiting import turns, until


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
