"""Two async generators read as one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

from dynamo_shared.aio.together import ended

T = TypeVar("T")
U = TypeVar("U")


async def merged(first: AsyncGenerator[T, None], second: AsyncGenerator[U, None]) -> AsyncGenerator[T | U, None]:
    """Items of both in order of arrival, until the first ends; then the rest of the second. Closes both at the end.

    An error of the first one is raised at once. The end or an error of the second one waits until the first one has
    ended.
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
                    # The item may be large, and the next one may come much later.
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
