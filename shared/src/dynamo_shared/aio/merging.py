"""Two async generators read as one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

from dynamo_shared.aio.together import ended

T = TypeVar("T")
U = TypeVar("U")


async def merged(first: AsyncGenerator[T, None], second: AsyncGenerator[U, None]) -> AsyncGenerator[T | U, None]:
    """Items of both as they come, until the first one ends; then the rest of the second. Both are closed at the end.

    The first one's error is raised at once. The second one's end or error waits until the first one has ended.
    """
    async with aclosing(first), aclosing(second):
        one: asyncio.Future[T | None] = asyncio.ensure_future(anext(first, None))
        other: asyncio.Future[U | None] = asyncio.ensure_future(anext(second, None))
        try:
            while True:
                await asyncio.wait((one,) if _is_over(other) else (one, other), return_when=asyncio.FIRST_COMPLETED)
                if one.done():
                    if (item := one.result()) is None:
                        break
                    yield item
                    # What it was may be large, and the next one long in coming.
                    del item
                    one = asyncio.ensure_future(anext(first, None))
                elif not _is_over(other) and (news := other.result()) is not None:
                    yield news
                    other = asyncio.ensure_future(anext(second, None))
            if (news := await other) is not None:
                yield news
        finally:
            await ended(one, other)
        async for each in second:
            yield each


def _is_over(task: asyncio.Future[T | None]) -> bool:
    return task.done() and (task.exception() is not None or task.result() is None)
