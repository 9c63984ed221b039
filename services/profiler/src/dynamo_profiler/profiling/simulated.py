"""Simulations for requests, from the cache or the pool. Concurrent requests share one computation."""

import asyncio
from collections.abc import Iterable, Sequence

import structlog
from dynamo_shared.aio import Joined, spread
from dynamo_shared.runtime.settings.planner import Rapid

from dynamo_profiler.metrics import ProfilingMetrics
from dynamo_profiler.profiling.cache import AnswerCache, key_of
from dynamo_profiler.profiling.simulation.pool import CHILD, MemoryExceeded, PoolBusy, WorkerDied, WorkerPool
from dynamo_profiler.profiling.simulation.wire import (
    Curves,
    JobResult,
    JobStatus,
    ReportProgress,
    SimulationSweep,
    WorkerJob,
)

_log = structlog.get_logger("dynamo.planner.profiling")
_AGAIN = 1.0
"""Approximate interval between attempts at a full pool. Seconds."""

Simulation = SimulationSweep | Curves


class Simulations:
    """Answers jobs. Cancelling a call ends its worker process. Closing the pool ends all processes."""

    def __init__(self, settings: Rapid, child: Sequence[str] = CHILD, metrics: ProfilingMetrics | None = None) -> None:
        self._settings = settings
        self._metrics = metrics
        self._cache = AnswerCache(settings.cache_entries, settings.cache_dir)
        self._answering: Joined[str, JobResult] = Joined()
        self.pool = WorkerPool(settings, child)
        if metrics is not None:
            metrics.workers.set_function(lambda: self.pool.workers)
            metrics.memory.set_function(self.pool.resident)

    async def answers(
        self, jobs: Iterable[Simulation], digest: str, report: ReportProgress, namespace: str = ""
    ) -> list[JobResult]:
        """Answers to all jobs of a namespace; as many run in parallel as there are processes."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.answer(job, digest, report, namespace)) for job in jobs]
        return [task.result() for task in tasks]

    async def answer(self, job: Simulation, digest: str, report: ReportProgress, namespace: str = "") -> JobResult:
        """The answer of a job, cached or computed; BROKEN for all current callers if its process failed."""
        key, computes = key_of(job, digest), False

        async def work() -> JobResult:
            nonlocal computes
            known = await self._cache.get(key)
            if known is None:
                computes = True
                known = await self.computed(job, report, namespace)
                await self._cache.put(key, known)
            return known

        answer = await self._answering.result(key, work)
        self._count(answer, cached=not computes)
        return answer

    def _count(self, answer: JobResult, *, cached: bool) -> None:
        if self._metrics is None:
            return
        self._metrics.sweeps.labels(answer.outcome.value, str(cached).lower()).inc()
        if not cached:
            self._metrics.seconds.observe(answer.seconds)

    async def computed(self, job: WorkerJob, report: ReportProgress, namespace: str = "") -> JobResult:
        """The answer of a job of any kind, not cached; BROKEN if its process failed."""
        for last in (False, True):
            try:
                return await self._turn(job, report, namespace)
            except WorkerDied as died:
                # The kernel may have killed the process because another one used the memory: one failure proves
                # nothing.
                if last:
                    return JobResult(outcome=JobStatus.BROKEN, message=str(died))
                _log.warning("profiling worker process died; retrying its job", error=str(died))
            except MemoryExceeded as grown:
                if grown.warm and not last:
                    continue
                text = f"{grown}: raise platform.planner.rapid.memoryMib"
                return JobResult(outcome=JobStatus.BROKEN, message=text)
            except TimeoutError:
                text = f"no answer within {self._settings.time_limit:g} s: raise platform.planner.rapid.timeLimit"
                return JobResult(outcome=JobStatus.BROKEN, message=text)
        raise AssertionError("unreachable")

    async def _turn(self, job: WorkerJob, report: ReportProgress, namespace: str) -> JobResult:
        while True:
            try:
                return await self.pool.run(job, report, namespace)
            except PoolBusy:
                await asyncio.sleep(spread(_AGAIN, most=1.5))
