"""Urgent keys come first and delay others while they are handled, within a bound."""

import asyncio

import pytest
from dynamo_shared.aio import ended
from dynamo_shared.runtime import workqueue
from dynamo_shared.runtime.debounce import EACH, FEW, HOLD, MOST, WINDOW, Debounce
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.workqueue import Result, WorkQueue

from tests.building.clock import ManualClock
from tests.building.tasks import in_background
from tests.building.waiting import turns, until


def queue(clock: ManualClock) -> WorkQueue[str]:
    return WorkQueue(metrics=Metrics().queue("test"), clock=clock, urgent=str.isupper)


async def test_urgent_keys_come_first_and_others_wait_until_they_are_done():
    work = queue(ManualClock())
    for key in ("a", "B", "c", "D", "B"):
        work.add(key)
    assert len(work) == 4
    assert [await work.get(), await work.get()] == ["B", "D"]
    waiting = asyncio.create_task(work.get())
    await asyncio.sleep(0)
    work.done("B")
    await asyncio.sleep(0)
    assert not waiting.done()
    work.done("D")
    assert await waiting == "a"
    assert await work.get() == "c"


@pytest.mark.parametrize("urgent_workers", [0, 2])
async def test_workers_finish_every_mix_of_keys(urgent_workers):
    done: list[str] = []
    work: WorkQueue[str] = WorkQueue(metrics=Metrics().queue("test"), urgent=str.isupper)

    async def handle(key: str) -> Result:
        await asyncio.sleep(0)
        done.append(key)
        if key == "a":
            work.add("Z")
        return Result()

    running = asyncio.create_task(work.run(3, handle, urgent_workers=urgent_workers))
    for key in "aBcDeFgH":
        work.add(key)
    await until(lambda: len(done) >= 9, within=60)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(done) == sorted("aBcDeFgHZ")
    assert done[:3] == ["B", "D", "F"]


async def test_workers_for_urgent_keys_handle_only_these_while_all_others_are_busy():
    clock, busy, done = ManualClock(), asyncio.Event(), []
    work = queue(clock)

    async def handle(key: str) -> Result:
        if key == "a":
            await busy.wait()
        done.append(key)
        return Result()

    running = asyncio.create_task(work.run(1, handle, urgent_workers=1))
    work.add("a")
    await turns()
    work.add("b")
    work.add("B")
    work.add("C", after=0.001)
    await turns()
    assert done == ["B"]
    clock.now += 1
    await until(lambda: done == ["B", "C"], within=60)
    busy.set()
    await turns()
    assert done == ["B", "C", "a", "b"]
    await ended(running)


async def test_keys_that_wait_for_urgent_ones_are_handled_when_these_are_forgotten():
    work = queue(ManualClock())
    work.add("A")
    waiting = [asyncio.create_task(work.get(urgent=urgent)) for urgent in (True, False)]
    await turns()
    work.add("B")
    work.add("c")
    await work.drain(lambda key: key == "B")
    await turns()
    work.done("A")
    assert await waiting[1] == "c"


async def test_a_worker_that_is_cancelled_leaves_its_key_to_another():
    work = queue(ManualClock())
    urgent, general = (asyncio.create_task(work.get(urgent=urgent)) for urgent in (True, False))
    await turns()
    work.add("A")
    urgent.cancel()
    assert await general == "A"


def test_a_few_changes_do_not_wait_and_many_wait_until_they_end():
    clock = ManualClock()
    debounce = Debounce(clock)
    assert [debounce.after_one_more() for _ in range(FEW)] == [0.0] * FEW
    assert debounce.after_one_more() == pytest.approx(HOLD + EACH)
    for _ in range(1000):
        debounce.after_one_more()
    assert debounce.after_these() == MOST
    clock.now += WINDOW + 0.1
    assert debounce.after_these() == 0.0


async def test_hanging_urgent_work_does_not_block_the_rest_of_an_idle_queue(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workqueue, "HOLD_WITHIN", 0.01)
    work: WorkQueue[str] = WorkQueue(metrics=Metrics().queue("test"), urgent=str.isupper)
    done = asyncio.Event()

    async def handle(key: str) -> Result:
        if key.isupper():
            await asyncio.Event().wait()
        done.set()
        return Result()

    async with in_background(work.run(2, handle, urgent_workers=1, finish_within=0)):
        await asyncio.sleep(0)
        work.add("A")
        await asyncio.sleep(0)
        work.add("b")
        async with asyncio.timeout(60):
            await done.wait()
