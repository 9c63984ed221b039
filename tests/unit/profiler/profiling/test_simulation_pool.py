"""Worker processes: how many, how large, how long, and what ends them."""

import asyncio
import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from dynamo_profiler.profiling.simulated import Simulations
from dynamo_profiler.profiling.simulation import pool as worker_pool
from dynamo_profiler.profiling.simulation.pool import MemoryExceeded, PoolBusy, WorkerDied, WorkerPool
from dynamo_profiler.profiling.simulation.wire import JobStatus, SimulationSweep
from dynamo_shared.aio import Process, ended
from dynamo_shared.runtime.settings.planner import Rapid

from tests.building.waiting import until
from tests.unit.profiler.profiling.profiling_world import FAKE


def settings(**more: object) -> Rapid:
    return Rapid.model_validate({"processes": 2, "niceness": 0, "memory_mib": 512, **more})


def job(system: str = "h200_sxm", **more: object) -> SimulationSweep:
    given = {
        "model": "m",
        "backend": "vllm",
        "serving": "agg",
        "total_gpus": 16,
        "gpus_per_node": 8,
        "isl": 4000,
        "osl": 1000,
        "ttft_ms": 2000.0,
        "itl_ms": 30.0,
        "latency_ms": None,
        **more,
    }
    return SimulationSweep(system=system, **given)  # type: ignore[arg-type]


class Reports:
    """Hears progress, and which process speaks."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()
        self.said: list[tuple[str, str]] = []

    def __call__(self, role: str, sentence: str) -> None:
        self.said.append((role, sentence))
        self.heard.set()

    @property
    def pid(self) -> int:
        return int(self.said[-1][1].split()[-1])


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def test_a_worker_is_kept_for_the_next_job():
    async with WorkerPool(settings(), FAKE) as pool:
        first, second = Reports(), Reports()
        answer = await pool.run(job(), first)
        assert answer.outcome is JobStatus.FEASIBLE
        assert len(answer.points) == 2
        await pool.run(job(), second)
        assert first.pid == second.pid
        assert pool.workers == 1
    assert pool.workers == 0
    assert gone(first.pid)


async def test_namespaces_take_turns():
    """A namespace with many jobs that run into their time limit delayed all others for half an hour."""
    async with WorkerPool(settings(processes=1), FAKE) as pool:
        order: list[str] = []
        reported = Reports()
        first = asyncio.create_task(pool.run(job("b200_sxm"), reported, "many"))
        await reported.heard.wait()

        async def run(name: str, namespace: str) -> None:
            await pool.run(job(), Reports(), namespace)
            order.append(name)

        waiting = [asyncio.create_task(run(f"many {number}", "many")) for number in range(3)]
        waiting.append(asyncio.create_task(run("one", "one")))
        await asyncio.sleep(0)
        await ended(waiting[0])
        await ended(first)
        await asyncio.gather(*waiting[1:])
        assert order == ["many 1", "one", "many 2"]


async def test_no_worker_starts_without_work():
    async with WorkerPool(settings(), FAKE) as pool:
        assert pool.workers == 0


async def test_the_number_of_workers_is_limited():
    async with WorkerPool(settings(), FAKE) as pool:
        await asyncio.gather(*(pool.run(job(), Reports()) for _ in range(6)))
        assert pool.workers == 2


async def test_cancellation_ends_the_process():
    async with WorkerPool(settings(), FAKE) as pool:
        reported = Reports()
        task = asyncio.create_task(pool.run(job("b200_sxm"), reported))
        await reported.heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert pool.workers == 0
        # Its turn is free again.
        assert (await pool.run(job(), Reports())).outcome is JobStatus.FEASIBLE
    assert gone(reported.pid)


async def test_a_waiting_job_can_be_cancelled():
    async with WorkerPool(settings(processes=1), FAKE) as pool:
        reported = Reports()
        busy = asyncio.create_task(pool.run(job("b200_sxm"), reported))
        await reported.heard.wait()
        waiting = asyncio.create_task(pool.run(job(), Reports()))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert pool.workers == 1
        assert not gone(reported.pid)
        await ended(busy)
        assert (await pool.run(job(), Reports())).outcome is JobStatus.FEASIBLE


@pytest.mark.parametrize(
    ("limit", "system", "error"),
    [
        pytest.param({"time_limit": 0.2}, "b200_sxm", pytest.raises(TimeoutError), id="too long"),
        pytest.param(
            {"memory_mib": 128}, "a30", pytest.raises(MemoryExceeded, match="the limit is 128"), id="too large"
        ),
    ],
)
async def test_a_worker_above_its_limits_is_killed(limit, system, error):
    async with WorkerPool(settings().model_copy(update=limit), FAKE) as pool:
        reported = Reports()
        with error:
            await pool.run(job(system), reported)
        assert pool.resident() == 0
    assert gone(reported.pid)


async def test_a_worker_that_does_not_start_is_not_an_error_of_the_job(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker_pool, "_START_LIMIT", 0.1)
    never_ready = (sys.executable, "-c", "import time; time.sleep(60)")
    simulations = Simulations(settings(), never_ready)
    async with simulations.pool:
        answer = await simulations.answer(job(), "", Reports())
        assert simulations.pool.workers == 0
    assert answer.outcome is JobStatus.BROKEN
    assert answer.message == "a worker process was not ready within 0.1 s"


async def test_a_worker_that_has_grown_is_restarted():
    async with WorkerPool(settings(processes=1).model_copy(update={"memory_mib": 100}), FAKE) as pool:
        pids = []
        for _ in range(3):
            reported = Reports()
            await pool.run(job("gb200"), reported)
            pids.append(reported.pid)
        assert len(set(pids)) == 3
        assert pool.workers == 0


async def test_a_job_without_memory_is_retried():
    limits = settings(processes=1).model_copy(update={"memory_mib": 100})
    simulations = Simulations(limits, FAKE)
    async with simulations.pool:
        # What the worker holds counts as little here, so that it is kept.
        await simulations.answer(job("h200_sxm"), "", Reports())
        (worker,) = simulations.pool._all
        reported = Reports()
        answer = await simulations.answer(job("a30"), "", reported)
        pids = {int(said.split()[-1]) for _, said in reported.said}
        assert answer.outcome is JobStatus.BROKEN
        assert "memoryMib" in answer.message
        assert worker.pid in pids
        assert len(pids) == 2


async def test_a_killed_worker_is_reported_with_its_last_output():
    async with WorkerPool(settings(), FAKE) as pool:
        with pytest.raises(WorkerDied, match="out of luck"):
            await pool.run(job("a100_sxm"), Reports())
        assert (await pool.run(job(), Reports())).outcome is JobStatus.FEASIBLE


async def test_a_worker_that_cannot_be_started_is_retried(monkeypatch: pytest.MonkeyPatch):
    """For a moment the node had no room for a process: the request failed for good, as if by a fault of the platform."""
    begun: list[object] = []
    start = Process.start

    async def no_room_at_first(*arguments: Any, **options: Any) -> Process:
        begun.append(arguments)
        if len(begun) == 1:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return await start(*arguments, **options)

    monkeypatch.setattr(Process, "start", no_room_at_first)
    simulations = Simulations(settings(), FAKE)
    async with simulations.pool:
        assert (await simulations.computed(job(), Reports())).outcome is JobStatus.FEASIBLE


async def test_an_idle_worker_ends():
    async with WorkerPool(settings().model_copy(update={"idle": 0.05}), FAKE) as pool:
        reported = Reports()
        await pool.run(job(), reported)
        await until(lambda: not pool.workers)
        assert (await pool.run(job(), Reports())).outcome is JobStatus.FEASIBLE


async def test_too_many_waiting_jobs_are_rejected():
    async with WorkerPool(settings(processes=1, waiting=1), FAKE) as pool:
        reported = Reports()
        busy = asyncio.create_task(pool.run(job("b200_sxm"), reported))
        await reported.heard.wait()
        waiting = asyncio.create_task(pool.run(job(), Reports()))
        await asyncio.sleep(0)
        with pytest.raises(PoolBusy):
            await pool.run(job(), Reports())
        busy.cancel()
        await asyncio.gather(busy, waiting, return_exceptions=True)


async def test_workers_stop_with_the_service():
    """A service that is killed closes no pool: its workers see their standard input end."""
    async with WorkerPool(settings(), FAKE) as pool:
        reported = Reports()
        await pool.run(job(), reported)
        (worker,) = pool._all
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        await until(lambda: not worker.alive)


async def test_a_worker_is_not_in_the_services_process_group():
    async with WorkerPool(settings(), FAKE) as pool:
        reported = Reports()
        await pool.run(job(), reported)
        assert os.getpgid(reported.pid) != os.getpgid(0)
