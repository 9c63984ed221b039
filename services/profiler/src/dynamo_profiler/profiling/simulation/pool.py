"""A pool of worker processes for AI Configurator: few, small, killable, and separate from the services.

Workers are separate programs, never forks of this process, which has threads and gRPC. A worker starts if there is work
and no idle worker. It keeps its imports for the next job, and ends when idle. A job that is cancelled, takes too long
or grows too large costs only its process.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Self

from dynamo_shared.aio import Process, Turns, either, ended
from dynamo_shared.runtime.settings.planner import Rapid

from dynamo_profiler.profiling.simulation.wire import JobResult, JobStatus, ReportProgress, WorkerJob, answer_from

#: Command of a worker. Its arguments are the memory limit in MiB and the niceness.
CHILD = (sys.executable, "-m", "dynamo_profiler.profiling.simulation.child")
#: Libraries in a worker compute with one thread: two workers should use two cores, not sixteen.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS")
_LINE_LIMIT = 64 * 1024 * 1024
_START_LIMIT = 300.0
"""Time-out for the imports of a worker, seconds: about 2 on a free core, but a busy machine is far slower."""
_MEASURE_EVERY = 0.25
"""Interval between two measurements of a worker's memory, seconds."""
_KEPT = 0.5
"""Largest share of its memory limit at which a worker is kept for another job."""
_MIB = 1024 * 1024
_PAGE = os.sysconf("SC_PAGE_SIZE")


class PoolBusy(Exception):
    """The queue of jobs is full; the caller retries later."""


class MemoryExceeded(Exception):
    """A worker exceeded its memory limit. `warm`: earlier jobs had left data in it."""

    def __init__(self, message: str, *, warm: bool) -> None:
        super().__init__(message)
        self.warm = warm


class WorkerDied(Exception):
    """A worker ended by itself, or was not ready in time. The message has its last output."""


@dataclass(slots=True, eq=False)
class _Worker:
    process: Process
    words: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    listener: asyncio.Task[None] | None = None
    idle: asyncio.TimerHandle | None = None
    jobs: int = 0
    """number of jobs done before"""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.alive

    def resident(self) -> int:
        """Resident memory in bytes; 0 if the worker has ended."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError, ValueError):
            return 0


class WorkerPool:
    """Runs jobs, each in one worker. Namespaces take turns: one with many slow jobs delays only its own.

    Closing it, or leaving `async with`, ends all workers.
    """

    def __init__(self, settings: Rapid, child: Sequence[str] = CHILD) -> None:
        self._settings = settings
        self._child = tuple(child)
        self._places = settings.processes
        """number of jobs that may start now"""
        self._waiting: Turns[tuple[str, asyncio.Future[None]]] = Turns(lambda waiting: waiting[0])
        self._free: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._endings: set[asyncio.Task[None]] = set()
        self._closed = False
        self.peak = 0
        """largest memory of one worker so far, bytes"""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def workers(self) -> int:
        """Number of running processes."""
        return sum(worker.alive for worker in self._all)

    def resident(self) -> int:
        """Memory of all workers, bytes."""
        return sum(worker.resident() for worker in self._all)

    async def run(self, job: WorkerJob, report: ReportProgress, namespace: str = "") -> JobResult:
        """Run a job for a namespace and return its answer. `report` receives its progress. Cancelling ends its process.

        Raises PoolBusy, MemoryExceeded, WorkerDied or TimeoutError. Does not repeat a job whose worker died before it began,
        or because another process used the memory: the caller decides that.
        """
        async with self._turn(namespace):
            worker = await self._worker()
            try:
                async with asyncio.timeout(self._settings.time_limit):
                    # If both tasks have ended, the excessive memory is the reason for the missing answer.
                    answer = await either(self._watch(worker), _ask(worker, job, report))
            except BaseException:
                self._end(worker)
                raise
            self._release(worker)
            return answer

    async def close(self) -> None:
        """End all workers."""
        self._closed = True
        for worker in tuple(self._all):
            self._end(worker)
        await asyncio.gather(*self._endings, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def _turn(self, namespace: str) -> AsyncIterator[None]:
        if len(self._waiting) >= self._settings.waiting:
            raise PoolBusy(f"{len(self._waiting)} parts of requests already wait for a worker process")
        if self._places:
            self._places -= 1
        else:
            waiting = namespace, asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                await waiting[1]
            except asyncio.CancelledError:
                if waiting[1].cancelled():
                    self._waiting.discard(waiting)
                else:
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give a place to the next job that waits."""
        while self._waiting.available:
            (_, waiting), _ = self._waiting.pop()
            if not waiting.done():
                waiting.set_result(None)
                return
        self._places += 1

    async def _worker(self) -> _Worker:
        while self._free:
            worker = self._free.pop()
            if worker.idle is not None:
                worker.idle.cancel()
            if worker.alive:
                return worker
            self._end(worker)
        if self._closed:
            raise WorkerDied("the pool is closed")
        return await self._start()

    async def _start(self) -> _Worker:
        environment = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONSTARTUP", "PYTHONINSPECT")
        }
        environment.update(dict.fromkeys(_ONE_THREAD, "1"))
        try:
            process = await Process.start(
                (*self._child, str(self._settings.memory_mib), str(self._settings.niceness)),
                environ=environment,
                writes=True,
                # Only the service handles a signal to its process group, such as Ctrl-C.
                own_session=True,
                limit=_LINE_LIMIT,
            )
        except OSError as error:
            # Memory or process ids are exhausted; other processes may release them.
            raise WorkerDied(f"a worker process could not be started: {error.strerror or error}") from error
        worker = _Worker(process)
        worker.listener = asyncio.create_task(_listen(worker))
        self._all.add(worker)
        try:
            async with asyncio.timeout(_START_LIMIT):
                await _next(worker)
        except TimeoutError as error:
            # The job has not begun: this is not the job's time-out.
            self._end(worker)
            raise WorkerDied(f"a worker process was not ready within {_START_LIMIT:g} s") from error
        except BaseException:
            self._end(worker)
            raise
        return worker

    async def _watch(self, worker: _Worker) -> NoReturn:
        """Raise MemoryExceeded when the worker holds too much memory."""
        limit = self._settings.memory_mib * _MIB
        while True:
            held = worker.resident()
            self.peak = max(self.peak, held)
            if held > limit:
                text = f"a worker process took {held // _MIB} MiB; the limit is {self._settings.memory_mib} MiB"
                raise MemoryExceeded(text, warm=worker.jobs > 0)
            await asyncio.sleep(_MEASURE_EVERY)

    def _release(self, worker: _Worker) -> None:
        worker.jobs += 1
        # A worker keeps the figures of every system and engine that it has used: with too many it is replaced.
        if self._closed or worker.resident() > self._settings.memory_mib * _MIB * _KEPT:
            self._end(worker)
            return
        loop = asyncio.get_running_loop()
        worker.idle = loop.call_later(self._settings.idle, self._retire, worker)
        self._free.append(worker)

    def _retire(self, worker: _Worker) -> None:
        if worker in self._free:
            self._free.remove(worker)
            self._end(worker)

    def _end(self, worker: _Worker) -> None:
        """Kill the worker now, and await its end in a task, also while the caller is being cancelled."""
        if worker not in self._all:
            return
        self._all.discard(worker)
        if worker.idle is not None:
            worker.idle.cancel()
        worker.process.kill()
        ending = asyncio.create_task(_ended(worker))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)


async def _ended(worker: _Worker) -> None:
    await worker.process.end()
    if worker.listener is not None:
        await ended(worker.listener)


async def _listen(worker: _Worker) -> None:
    """Keep the end of the worker's standard error: nothing else reads it, and a full pipe would block the worker."""
    while chunk := await worker.process.stderr.read(65536):
        worker.words.extend(line for line in chunk.decode(errors="replace").splitlines() if line.strip())


async def _ask(worker: _Worker, job: WorkerJob, report: ReportProgress) -> JobResult:
    stdin = worker.process.stdin
    if stdin is None:
        raise WorkerDied("the worker process has no standard input")
    try:
        stdin.write(json.dumps(job.job()).encode() + b"\n")
        await stdin.drain()
    except (BrokenPipeError, ConnectionResetError) as error:
        raise WorkerDied(_exit_message(worker)) from error
    while True:
        message = await _next(worker)
        if "progress" in message:
            report(str(message.get("role", "")), str(message["progress"]))
        elif "answer" in message:
            try:
                return answer_from(message["answer"])
            except (ValueError, TypeError, KeyError) as error:
                return JobResult(outcome=JobStatus.BROKEN, message=f"no answer: {error}")


async def _next(worker: _Worker) -> dict[str, Any]:
    line = await worker.process.stdout.readline()
    if not line:
        raise WorkerDied(_exit_message(worker))
    message: dict[str, Any] = json.loads(line)
    return message


def _exit_message(worker: _Worker) -> str:
    last_line = list(worker.words)[-1:]
    return f"a worker process ended unexpectedly{': ' + last_line[0][:500] if last_line else ''}"
