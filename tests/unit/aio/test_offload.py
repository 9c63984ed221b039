"""Large work in threads, few at a time."""

import asyncio
import threading

import pytest
from dynamo_shared.aio import Offload, Pauses, ended


async def test_work_whose_caller_was_cancelled_still_counts() -> None:
    """Clients that disconnected and reconnected could occupy any number of threads."""
    offload = Offload(above=0, at_once=1)
    begun, go_on = threading.Event(), threading.Event()
    at_work: list[str] = []

    def long() -> None:
        at_work.append("long")
        begun.set()
        go_on.wait()
        at_work.remove("long")

    gone = asyncio.create_task(offload.run(1, long))
    try:
        await asyncio.to_thread(begun.wait)
        await ended(gone)
        next_one = asyncio.create_task(offload.run(1, lambda: list(at_work)))
        # Long enough for a thread that does not wait for its turn.
        await asyncio.to_thread(lambda: None)
        await asyncio.to_thread(lambda: None)
        assert not next_one.done()
    finally:
        go_on.set()
    assert await next_one == []


async def test_waiting_work_that_is_cancelled_never_starts() -> None:
    offload = Offload(above=0, at_once=1)
    go_on, done = threading.Event(), []
    first = asyncio.create_task(offload.run(1, go_on.wait))
    waiting = asyncio.create_task(offload.run(1, lambda: done.append("waiting")))
    await asyncio.sleep(0)
    await ended(waiting)
    go_on.set()
    assert await first
    await offload.run(1, lambda: done.append("last"))
    assert done == ["last"]


async def test_lanes_take_turns() -> None:
    offload = Offload(above=0, at_once=1)
    go_on, done = threading.Event(), list[str]()

    async def run(lane: str) -> None:
        await offload.run(1, lambda: done.append(lane), lane)

    first = asyncio.create_task(offload.run(1, go_on.wait, "many"))
    many = [asyncio.create_task(run("many")) for _ in range(100)]
    few = [asyncio.create_task(run("few")) for _ in range(2)]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(first, *many, *few)
    assert (done[:4], done.count("many")) == (["few", "many", "few", "many"], 100)


async def test_a_lane_whose_callers_are_cancelled_does_not_delay_others() -> None:
    """Each change of a configuration cancels a fit, and begins another."""
    offload = Offload(above=0, at_once=1)
    go_on, done = threading.Event(), list[str]()
    for _ in range(100):
        gone = asyncio.create_task(offload.run(1, go_on.wait, "changed"))
        await asyncio.sleep(0)
        await ended(gone)
    last = asyncio.create_task(offload.run(1, lambda: done.append("changed"), "changed"))
    other = asyncio.create_task(offload.run(1, lambda: done.append("other"), "other"))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(last, other)
    assert done == ["other", "changed"]


async def test_a_lane_has_one_thread_even_if_its_callers_do_not_wait() -> None:
    """A query that timed out left its thread at a name whose name servers did not answer, and began the next one."""
    offload = Offload(above=0, at_once=2)
    begun, go_on = threading.Event(), threading.Event()

    def silent() -> None:
        begun.set()
        go_on.wait()

    try:
        gone = asyncio.create_task(offload.run(1, silent, "silent"))
        await asyncio.to_thread(begun.wait)
        await ended(gone)
        again = asyncio.create_task(offload.run(1, silent, "silent"))
        async with asyncio.timeout(60):
            assert await offload.run(1, lambda: "other", "other") == "other"
            assert await offload.run(1, lambda: "third", "third") == "third"
    finally:
        go_on.set()
    await again
    assert await offload.run(1, lambda: "last", "silent") == "last"


@pytest.mark.parametrize("size", [1, 100])
async def test_errors_are_those_of_the_work(size: int) -> None:
    with pytest.raises(ZeroDivisionError):
        await Offload(above=10, at_once=1).run(size, lambda: 1 // 0)


def test_a_pause_is_due_after_each_share_of_work():
    pauses = Pauses(3)
    assert [pauses.due() for _ in range(7)] == [False, False, True, False, False, True, False]


def test_one_large_piece_of_work_needs_one_pause():
    pauses = Pauses(3)
    assert [pauses.due(size) for size in (10, 2, 1, 2)] == [True, False, True, False]
