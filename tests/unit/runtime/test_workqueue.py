"""The work queue: no key is handled twice at once, the newest request wins, failures are retried later."""

import asyncio
from collections import Counter

import pytest
from dynamo_shared.aio import ended
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.workqueue import LAST_RETRY, Result, WorkQueue

from tests.building.clock import ManualClock
from tests.building.waiting import turns


def queue(clock: ManualClock | None = None) -> WorkQueue[str]:
    return WorkQueue(metrics=Metrics().queue("test"), clock=clock or ManualClock(), jitter=lambda: 1.0)


async def taken(work: WorkQueue[str]) -> list[str]:
    """Keys that are ready now, in order."""
    results = []
    while True:
        try:
            results.append(await asyncio.wait_for(work.get(), 0.01))
        except TimeoutError:
            return results


async def test_adding_twice_is_adding_once():
    work = queue()
    for key in ("a", "b", "a"):
        work.add(key)
    assert await taken(work) == ["a", "b"]


async def test_a_key_added_during_its_work_is_handled_again_afterwards():
    work = queue()
    work.add("a")
    assert await work.get() == "a"
    work.add("a")
    work.add("a")
    assert await taken(work) == []
    work.done("a")
    assert await taken(work) == ["a"]
    work.done("a")
    assert await taken(work) == []


async def test_delayed_keys_wait_for_their_time_and_the_earliest_request_counts():
    clock = ManualClock()
    work = queue(clock)
    work.add("a", 10)
    work.add("a", 5)
    work.add("a", 20)
    clock.now += 4.9
    assert await taken(work) == []
    clock.now += 0.2
    assert await taken(work) == ["a"]
    work.done("a")
    clock.now += 100
    assert await taken(work) == []


async def test_an_immediate_request_also_fulfils_a_delayed_one():
    clock = ManualClock()
    work = queue(clock)
    work.add("a", 10)
    work.add("a")
    assert await taken(work) == ["a"]
    work.done("a")
    clock.now += 20
    assert await taken(work) == []


def test_failures_double_the_delay_up_to_a_minute_and_success_resets_it():
    work = queue()
    delays = [work.retry("a") for _ in range(20)]
    assert delays[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert max(delays) == LAST_RETRY
    work.forget("a")
    assert work.retry("a") == pytest.approx(0.005)
    assert work.retry("b") == pytest.approx(0.005)


async def test_workers_retry_after_errors_and_continue():
    work = WorkQueue[str](metrics=Metrics().queue("test"))
    observed: Counter[str] = Counter()
    finished = asyncio.Event()

    async def handler(key: str) -> Result:
        observed[key] += 1
        if key == "bad" and observed[key] < 3:
            raise RuntimeError("not yet")
        if observed["bad"] == 3 and observed["good"]:
            finished.set()
        return Result()

    task = asyncio.create_task(work.run(2, handler))
    work.add("bad")
    work.add("good")
    await asyncio.wait_for(finished.wait(), 60)
    await ended(task)
    assert observed == {"bad": 3, "good": 1}


async def test_a_cancellation_that_arrives_with_a_key_is_not_lost():
    for pauses in range(12):
        work = WorkQueue[str](metrics=Metrics().queue("test"))
        work.add("much later", 100)
        workers = asyncio.create_task(work.run(4, lambda _: asyncio.sleep(0, Result())))
        await asyncio.sleep(0.001)
        for key in "abcdef":
            work.add(key)
        await turns(pauses)
        workers.cancel()
        done, _ = await asyncio.wait([workers], timeout=1)
        assert done == {workers}, f"still running when cancelled after {pauses} turns of the loop"


async def test_requeue_after_brings_a_key_back():
    clock = ManualClock()
    work = queue(clock)
    checks = 0

    async def handler(_: str) -> Result:
        nonlocal checks
        checks += 1
        return Result(requeue_after=30)

    task = asyncio.create_task(work.run(1, handler))
    work.add("a")
    await turns()
    assert checks == 1
    clock.now += 31
    work.add("wake")
    await turns()
    assert checks == 3
    await ended(task)


async def test_a_worker_that_is_cancelled_while_a_key_arrives_ends_as_cancelled():
    work = queue()
    waiting = asyncio.create_task(work.get())
    await asyncio.sleep(0)
    waiting.cancel()
    work.add("a")
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await taken(work) == ["a"]
