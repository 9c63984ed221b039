"""A failing part is reported and restarted; its supervisor ends only by cancellation."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from dynamo_shared.aio import Backoff, supervised

from tests.building.tasks import in_background


class Reporter:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.well = asyncio.Event()

    def failed(self, error: Exception) -> None:
        self.heard.append(f"{type(error).__name__}: {error}")

    def recovered(self) -> None:
        self.heard.append("works again")
        self.well.set()


def once_well(*troubles: Callable[[], Awaitable[None]]) -> tuple[Callable[[], Awaitable[None]], asyncio.Event]:
    """Work that fails once in each way and then runs, and an event that signals this."""
    left, running = list(troubles), asyncio.Event()

    async def work() -> None:
        if left:
            await left.pop(0)()
            return
        running.set()
        await asyncio.Event().wait()

    return work, running


async def overflow() -> None:
    raise OverflowError("date value out of range")


async def leave() -> None:
    """Return."""


async def give_up() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (overflow, "OverflowError: date value out of range"),
        (leave, "EndedByItselfError: it ended by itself"),
        (give_up, "EndedByItselfError: it was cancelled from inside"),
    ],
)
async def test_a_part_that_ends_is_reported_and_restarted(trouble: Callable[[], Awaitable[None]], said: str):
    reporter = Reporter()
    work, running = once_well(trouble, trouble)
    async with in_background(supervised(work, reporter.failed, reporter.recovered, backoff=Backoff(0.0, 0.0))):
        await running.wait()
    assert reporter.heard == [said, said]


async def test_a_part_that_cannot_even_start_is_reported():
    reporter, calls, running = Reporter(), iter([True, False]), asyncio.Event()

    def work() -> Awaitable[object]:
        if next(calls):
            raise ValueError("no such file")
        running.set()
        return asyncio.Event().wait()

    async with in_background(supervised(work, reporter.failed, reporter.recovered, backoff=Backoff(0.0, 0.0))):
        await running.wait()
    assert reporter.heard == ["ValueError: no such file"]


async def test_a_part_has_recovered_after_it_has_run_for_a_while_and_continues():
    reporter, backoff, begun = Reporter(), Backoff(0.0, 0.0), 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            await overflow()
        await asyncio.Event().wait()

    async with in_background(supervised(work, reporter.failed, reporter.recovered, backoff=backoff, well_after=0.01)):
        await reporter.well.wait()
        assert backoff.failures == 0
        await asyncio.sleep(0.1)
    assert begun == 2
    assert reporter.heard == ["OverflowError: date value out of range", "works again"]


async def test_the_delays_grow():
    asked: list[int] = []

    class Counting(Backoff):
        def next(self) -> float:
            super().next()
            asked.append(self.failures)
            return 0.0

    work, running = once_well(overflow, overflow, overflow)
    async with in_background(supervised(work, Reporter().failed, backoff=Counting(1.0, 60.0))):
        await running.wait()
    assert asked == [1, 2, 3]


async def test_cancellation_waits_until_the_part_has_ended():
    running, over = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            running.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            over.set()

    reporter = Reporter()
    task = asyncio.create_task(supervised(work, reporter.failed, reporter.recovered))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert over.is_set()
    assert reporter.heard == []
