"""How work ends: when the queue stops, when its keys move to another replica, and when they are lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
from dynamo_shared.aio import ended
from dynamo_shared.kube.errors import TooManyRequests
from dynamo_shared.runtime import workqueue
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.ratelimit import RateLimit
from dynamo_shared.runtime.workqueue import Result, WorkQueue
from structlog.testing import capture_logs

from tests.building.clock import ManualClock
from tests.building.tasks import in_background
from tests.building.waiting import turns, until


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[MutableMapping[str, Any]]]:
    """What the queue logs. Its own logger may be bound already, to the configuration of another test."""
    monkeypatch.setattr(workqueue, "log", structlog.get_logger())
    with capture_logs() as entries:
        yield entries


class Work:
    """A handler that waits until it is released, and records what happens."""

    def __init__(self) -> None:
        self.queue = WorkQueue[str](metrics=Metrics().queue("test"))
        self.go = asyncio.Event()
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.cut: list[str] = []

    async def handle(self, key: str) -> Result:
        self.begun.append(key)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cut.append(key)
            raise
        self.ended.append(key)
        return Result()

    @asynccontextmanager
    async def running(self, workers: int = 2, finish_within: float = 5) -> AsyncIterator[asyncio.Task[None]]:
        async with in_background(self.queue.run(workers, self.handle, finish_within=finish_within)) as task:
            yield task


async def test_running_work_ends_in_order_and_no_new_work_starts() -> None:
    work = Work()
    async with work.running() as task:
        for key in "abcd":
            work.queue.add(key)
        await turns()
        task.cancel()
        await turns()
        assert not task.done()
        work.go.set()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled()
    assert work.ended == work.begun == ["a", "b"]
    assert not work.cut


@pytest.mark.parametrize(("seconds", "cancellations"), [(0.01, 1), (600, 2)], ids=["time is over", "a second cancel"])
async def test_work_that_does_not_end_is_cancelled(seconds: float, cancellations: int) -> None:
    work = Work()
    async with work.running(finish_within=seconds) as task:
        work.queue.add("a")
        for _ in range(cancellations):
            await turns()
            task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled()
    assert work.cut == ["a"]


async def test_drain_drops_waiting_keys_and_waits_for_running_work() -> None:
    work = Work()
    async with work.running(workers=1):
        for key in ("mine", "mine-too", "kept"):
            work.queue.add(key)
        work.queue.add("mine-later", 100)
        await turns()
        work.queue.add("mine")
        draining = asyncio.create_task(work.queue.drain(lambda key: key.startswith("mine")))
        await turns()
        assert not draining.done()
        work.go.set()
        await asyncio.wait_for(draining, 60)
        await turns()
        assert work.begun == ["mine", "kept"]


async def test_abort_ends_the_work_at_once_and_the_worker_continues() -> None:
    work = Work()
    async with work.running(workers=2) as task:
        for key in ("lost", "kept", "lost-too"):
            work.queue.add(key)
        await turns()
        work.queue.abort(lambda key: key.startswith("lost"))
        work.queue.abort(lambda key: key.startswith("lost"))
        await turns()
        assert work.cut == ["lost"]
        assert work.queue.working == {"kept"}
        work.go.set()
        work.queue.add("next")
        await turns()
        assert work.ended == ["kept", "next"]
        work.queue.add("lost")
        await turns()
        assert work.ended[-1] == "lost", "gained again"
        assert not task.done()


async def test_a_handler_that_swallows_the_abort_does_not_affect_the_next_key() -> None:
    """Some libraries do that: the cancellation of one key's work must not count for the work on another."""
    queue = WorkQueue[str](metrics=Metrics().queue("test"))
    swallowed: list[str] = []

    async def handler(key: str) -> Result:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if key == "other":
                raise
            swallowed.append(key)
        return Result()

    task = asyncio.create_task(queue.run(1, handler))
    for key in ("lost", "other", "lost-too"):
        queue.add(key)
        await turns()
        queue.abort(lambda _: True)
        await turns()
    assert not task.done(), "the workers go on"
    assert swallowed == ["lost", "lost-too"]
    await ended(task)


async def test_a_handler_that_cancels_itself_has_failed() -> None:
    clock = ManualClock()
    queue = WorkQueue[str](metrics=Metrics().queue("test"), clock=clock)

    async def handler(_: str) -> Result:
        raise asyncio.CancelledError

    task = asyncio.create_task(queue.run(1, handler))
    queue.add("a")
    await turns()
    assert not task.done(), "the workers go on"
    assert "a" in queue._due
    await ended(task)


async def test_unfinished_work_is_logged_at_the_end(logs: list[MutableMapping[str, Any]]) -> None:
    work = Work()
    async with work.running(workers=1, finish_within=0.01):
        for number in range(8):
            work.queue.add(f"key-{number}")
        work.queue.add("later", 60)
        await turns()
    assert [(each["cut_off"], each["waiting"], each["first"], each["later"]) for each in logs] == [
        (["key-0"], 7, ["key-1", "key-2", "key-3", "key-4", "key-5"], 1)
    ]


async def test_a_clean_end_is_not_logged(logs: list[MutableMapping[str, Any]]) -> None:
    work = Work()
    work.go.set()
    async with work.running(workers=1):
        work.queue.add("a")
        await turns()
    assert not logs


async def test_a_stop_during_an_abort_is_not_lost() -> None:
    work = Work()
    async with work.running(workers=1, finish_within=1) as task:
        work.queue.add("lost")
        await turns()
        work.queue.abort(lambda _: True)
        task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled()


async def test_fulfilled_requests_do_not_accumulate() -> None:
    work = Work()
    for _ in range(10_000):
        work.queue.add("a", 600)
        work.queue.add("a")
        work.queue.done(await work.queue.get())
    assert len(work.queue._later) < 200


async def test_a_key_that_is_due_wakes_a_waiting_worker() -> None:
    work = Work()
    work.go.set()
    async with work.running():
        await turns()
        work.queue.add("later", 0.02)
        work.queue.add("sooner", 0.01)
        await until(lambda: work.ended == ["sooner", "later"], within=60)


async def test_handlers_that_never_wait_do_not_block_other_tasks() -> None:
    queue = WorkQueue[int](metrics=Metrics().queue("test"))
    handled = 0

    async def handler(_: int) -> Result:
        nonlocal handled
        handled += 1
        return Result()

    task = asyncio.create_task(queue.run(1, handler))
    await turns()
    for key in range(50_000):
        queue.add(key)
    await turns(10)
    assert 0 < handled < 50_000
    await ended(task)


async def test_retry_after_is_respected_and_keys_rejected_together_return_apart() -> None:
    chances = iter([0.0, 0.0, 1.0, 1.0])
    queue = WorkQueue[str](metrics=Metrics().queue("test"), clock=ManualClock(), jitter=lambda: next(chances))

    async def handler(_: str) -> Result:
        raise TooManyRequests(429, "TooManyRequests", "slow down", {"retryAfterSeconds": 8})

    task = asyncio.create_task(queue.run(1, handler))
    for key in ("a", "b"):
        queue.add(key)
    await turns()
    assert [queue._due[key] - queue._clock() for key in ("a", "b")] == pytest.approx([8, 12])
    await ended(task)


def test_rate_limit() -> None:
    now = [0.0]
    limit = RateLimit(rate=10, burst=2, clock=lambda: now[0])
    assert [limit.take() for _ in range(4)] == pytest.approx([0, 0, 0.1, 0.2])
    now[0] = 0.2
    assert limit.take() == pytest.approx(0.1)
    now[0] = 100
    assert [limit.take() for _ in range(3)] == pytest.approx([0, 0, 0.1])


async def test_the_depth_excludes_keys_that_were_given_away() -> None:
    metrics = Metrics()
    queue = WorkQueue[str](metrics=metrics.queue("test"))
    for key in ("mine-1", "mine-2", "theirs"):
        queue.add(key)
    assert metrics.registry.get_sample_value("dynamo_platform_queue_depth", {"queue": "test"}) == 3
    await queue.drain(lambda key: key.startswith("mine"))
    assert metrics.registry.get_sample_value("dynamo_platform_queue_depth", {"queue": "test"}) == 1


async def test_the_longest_running_work_is_exposed() -> None:
    clock, metrics = ManualClock(), Metrics()
    queue = WorkQueue[str](metrics=metrics.queue("test"), clock=clock)

    def longest() -> float | None:
        return metrics.registry.get_sample_value("dynamo_platform_queue_longest_work_seconds", {"queue": "test"})

    assert longest() == 0
    for key in ("slow", "slower"):
        queue.add(key)
        await queue.get()
        clock.now += 10
    assert longest() == 20
    queue.done("slow")
    assert longest() == 10
    queue.done("slower")
    assert longest() == 0


async def test_work_aborted_before_its_first_step_has_ended() -> None:
    work = Work()
    async with work.running(workers=1) as task:
        await turns()
        work.queue.add("lost")
        while not work.queue.working:
            await asyncio.sleep(0)
        work.queue.abort(lambda _: True)
        await turns()
        assert not work.queue.working
        assert not task.done()
    assert not work.begun
