"""Waiting for the effects of other tasks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from dynamo_shared.aio import ended

from tests.building.tasks import in_background

T = TypeVar("T")


async def until(condition: Callable[[], object], within: float = 60.0) -> None:
    """Return once a condition holds; TimeoutError if it does not hold within this many seconds."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.01)


async def turns(count: int = 20) -> None:
    """Let other tasks run as far as they get without time passing."""
    for _ in range(count):
        await asyncio.sleep(0)


@asynccontextmanager
async def counted_turns() -> AsyncIterator[Callable[[], int]]:
    """A function that returns how often other tasks have run since the block began."""
    taken = 0

    async def take() -> None:
        nonlocal taken
        while True:
            taken += 1
            await asyncio.sleep(0)

    async with in_background(take()):
        yield lambda: taken


async def with_turns(work: Awaitable[T]) -> tuple[T, int]:
    """The result of work, and how often other tasks ran before it was there."""
    async with counted_turns() as taken:
        return await work, taken()


async def reached(event: asyncio.Event, task: asyncio.Task[Any]) -> None:
    """Wait until a task has set an event. Raises AssertionError, or the task's own error, if the task ends before."""
    waits = asyncio.create_task(event.wait())
    await asyncio.wait([waits, task], return_when=asyncio.FIRST_COMPLETED)
    await ended(waits)
    if not event.is_set():
        raise AssertionError(f"the task ended before the event, with {task.result()}")
