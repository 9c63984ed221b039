"""The work queue of a reconciler: keys to look at, each at most once at a time.

A key stands for "look at this", never for what has happened, so that adding it twice is adding it once. A key that is
added while it is being worked on is worked on again afterwards: the newest state wins. A key whose work fails comes
back after a delay that doubles each time, with jitter, so that what fails together does not come back together.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from dynamo_shared.kube.errors import KubeError
from dynamo_shared.runtime.metrics import QueueMetrics

K = TypeVar("K", bound=Hashable)

#: Delay after the first failure, in seconds: a write conflict is over within milliseconds.
FIRST_RETRY = 0.005
#: Longest delay, in seconds: what fails for long is not worth more than one look a minute.
LAST_RETRY = 60.0

log = structlog.get_logger("dynamo.runtime.workqueue")


@dataclass(frozen=True, slots=True)
class Result:
    """What a look at a key led to; `requeue_after` asks for another look after so many seconds."""

    requeue_after: float | None = None


class WorkQueue(Generic[K]):
    """Keys waiting to be worked on. All methods belong to one event loop."""

    def __init__(
        self,
        *,
        metrics: QueueMetrics,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._metrics = metrics
        self._clock = clock
        self._jitter = jitter
        self._ready: dict[K, float] = {}  # in order of adding; the value is when it was added
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._due: dict[K, float] = {}
        self._later: list[tuple[float, int, K]] = []
        self._order = itertools.count()
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: K, after: float = 0.0) -> None:
        """Ask for a look at a key, `after` seconds from now; of several wishes the earliest counts."""
        if after > 0:
            due = self._clock() + after
            if key not in self._ready and due < self._due.get(key, float("inf")):
                self._due[key] = due
                heapq.heappush(self._later, (due, next(self._order), key))
                self._wake.set()
            return
        self._due.pop(key, None)
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = self._clock()
            self._metrics.added(len(self._ready))
            self._wake.set()

    def retry(self, key: K) -> float:
        """Ask for another look after a failure; returns the delay in seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(LAST_RETRY, FIRST_RETRY * 2.0 ** min(failures - 1, 30)) * (0.5 + self._jitter() / 2)
        self._metrics.retried()
        self.add(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key's work succeeded: its next failure is a first one again."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; `done` must be called with it. Waits until there is one."""
        while True:
            pause = self._mature()
            if self._ready:
                key = next(iter(self._ready))
                self._metrics.taken(self._clock() - self._ready.pop(key), len(self._ready))
                self._working.add(key)
                if self._ready:
                    self._wake.set()
                return key
            self._wake.clear()
            # Not wait_for: Python 3.11's loses a cancellation that comes together with what is waited for.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    def done(self, key: K) -> None:
        """The work on a key has ended, well or not."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    @property
    def working(self) -> frozenset[K]:
        """Keys that are being worked on."""
        return frozenset(self._working)

    async def run(self, workers: int, handler: Callable[[K], Awaitable[Result]]) -> None:
        """Work with so many workers until cancelled. A handler's exception is logged and brings its key back."""
        async with asyncio.TaskGroup() as group:
            for number in range(workers):
                group.create_task(self._work(handler), name=f"worker-{number}")

    async def _work(self, handler: Callable[[K], Awaitable[Result]]) -> None:
        while True:
            key = await self.get()
            try:
                with structlog.contextvars.bound_contextvars(key=str(key)):
                    await self._handle(key, handler)
            finally:
                self.done(key)

    async def _handle(self, key: K, handler: Callable[[K], Awaitable[Result]]) -> None:
        try:
            result = await handler(key)
        except KubeError as error:
            # The API server's word, not our mistake: it is away, or somebody was faster.
            log.info("again later", reason=error.reason, error=str(error), delay=round(self.retry(key), 3))
            return
        except Exception:
            log.exception("failed, again later", delay=round(self.retry(key), 3))
            return
        self.forget(key)
        if result.requeue_after is not None:
            self.add(key, max(result.requeue_after, 0.001))

    def _mature(self) -> float | None:
        """Move what is due to the ready keys; returns the seconds until the next one is, None where nothing waits."""
        now = self._clock()
        while self._later:
            due, _, key = self._later[0]
            if self._due.get(key) != due:  # an earlier wish replaced this one, or it was fulfilled
                heapq.heappop(self._later)
                continue
            if due > now:
                return due - now
            heapq.heappop(self._later)
            self.add(key)
        return None
