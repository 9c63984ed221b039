"""Concurrent tasks: the function that starts a task owns it, and the task has ended when that function returns."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Iterable
from contextlib import aclosing
from typing import Any, NoReturn, Protocol, TypeVar, cast

T = TypeVar("T")
U = TypeVar("U")


class EndedByItselfError(Exception):
    """A part that should run until cancelled has returned, or was cancelled from inside."""


class Held(Protocol):
    """Something that this process holds, and may lose."""

    async def wait_lost(self) -> None:
        """Return as soon as it is lost."""
        ...


async def all_of(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Await all, and return their results in order; the first error is raised after all have ended."""
    results = await asyncio.gather(*awaitables, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


async def both(first: Awaitable[T], second: Awaitable[U]) -> tuple[T, U]:
    """Await two, starting the first one first; an error is raised after both have ended."""
    results: list[Any] = await all_of(cast("tuple[Awaitable[Any], ...]", (first, second)))
    return results[0], results[1]


async def either(*works: Coroutine[Any, Any, T]) -> T:
    """Run all until the first ends, cancel the others, and return its result or raise its error.

    If several end at once, the first argument among them counts.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        first = next(task for task in tasks if task.done())
    finally:
        await ended(*tasks)
    return first.result()


async def endless(work: Awaitable[object]) -> NoReturn:
    """Await work that runs until it is cancelled. Raises EndedByItselfError if it returns, or is cancelled from inside.

    A TaskGroup ignores both, and its other tasks continue without the ended one. Libraries do raise CancelledError
    without a call of `cancel`: gRPC for a closed channel, for example.
    """
    try:
        await work
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise EndedByItselfError("it was cancelled from inside") from None
    raise EndedByItselfError("it ended by itself")


async def while_held(held: Held, work: Coroutine[Any, Any, None]) -> None:
    """Run work until it ends or `held` is lost. Raises the errors of the work, including those after its cancellation."""
    task = asyncio.ensure_future(work)
    losing = asyncio.ensure_future(held.wait_lost())
    try:
        await asyncio.wait((task, losing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        await ended(task, losing)
    if not task.cancelled():
        task.result()


async def cancellable(work: Awaitable[T]) -> T:
    """Await, and raise CancelledError if this task was cancelled meanwhile.

    In Python 3.11, asyncio.wait_for, which nats-py uses, loses a cancellation that comes together with the result or
    error, and nats-py itself drops some: a task that works in a loop would continue, and the task that awaits its end
    would wait without end.
    """
    task = asyncio.current_task()
    assert task is not None, "called outside of a task"
    before = task.cancelling()
    try:
        return await work
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError


async def ended(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and return when they have ended; their errors are not raised."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


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
