"""The running profilings of this process: one task for each request, owned here, and their outcomes."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import structlog
from dynamo_shared.aio import Lanes
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.api.v1beta1.request import ProfilingPhase

from dynamo_profiler.profiling.results import ProfileRequest, ProfilingFailed, ProfilingRequest, ProfilingResult

Outcome: TypeAlias = ProfilingResult | ProfilingFailed

log = structlog.get_logger("dynamo.planner.profiling")

_UNEXPECTED = "profiling failed unexpectedly because of an error of the platform, not of the request: {error!r}"


@dataclass(slots=True)
class _Work:
    key: ObjectKey
    task: asyncio.Task[None]
    step: tuple[ProfilingPhase, str]
    outcome: Outcome | None = None


class Profilings:
    """Starts, follows and stops profiling. `moved` is called with a request's key after each step and at the end."""

    def __init__(self, profile: ProfileRequest, moved: Callable[[ObjectKey], None], at_once: int) -> None:
        """`at_once`: largest number of profilings of a namespace at a time. Other namespaces do not wait for these."""
        self._result_for = profile
        self._moved = moved
        self._turns = Lanes(sys.maxsize, of_one=at_once)
        self._works: dict[str, _Work] = {}
        """by uid of the request; removed when the request's status has the outcome, or the request is deleted"""
        self._stopping: set[asyncio.Task[None]] = set()

    def ensure(self, uid: str, key: ObjectKey, asked: Callable[[], ProfilingRequest]) -> None:
        """Start profiling a request, unless it is running or done.

        `asked` returns the request when its turn comes: thousands may wait, and each may have a megabyte.
        """
        if uid in self._works:
            return
        task = asyncio.create_task(self._profile(uid, key, asked), name=f"profile {key}")
        self._works[uid] = _Work(key, task, (ProfilingPhase.INITIALIZING, "waiting for its turn"))

    def step(self, uid: str) -> tuple[ProfilingPhase, str] | None:
        """The phase of a running profiling, and a sentence about it; None if none is running."""
        work = self._works.get(uid)
        return work.step if work else None

    def outcome(self, uid: str) -> Outcome | None:
        """The outcome; None while profiling is running."""
        work = self._works.get(uid)
        return work.outcome if work else None

    def stop(self, uid: str) -> None:
        """End the work for a request, and forget it."""
        if (work := self._works.pop(uid, None)) is not None and not work.task.done():
            work.task.cancel()
            self._stopping.add(work.task)
            work.task.add_done_callback(self._stopping.discard)

    def stop_matching(self, concerns: Callable[[ObjectKey], bool]) -> None:
        """End the work for keys that another replica owns now."""
        for uid in [uid for uid, work in self._works.items() if concerns(work.key)]:
            self.stop(uid)

    async def release(self, concerns: Callable[[ObjectKey], bool]) -> None:
        """End the work for keys that another replica will own, and wait until it has ended."""
        self.stop_matching(concerns)
        await asyncio.gather(*self._stopping, return_exceptions=True)

    async def run(self) -> None:
        """Own the tasks until cancelled; they end with this method."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.release(lambda _: True)

    async def _profile(self, uid: str, key: ObjectKey, asked: Callable[[], ProfilingRequest]) -> None:
        outcome: Outcome
        try:
            async with self._turns.turn(key.namespace):
                outcome = await self._result_for(asked(), lambda phase, message: self._advance(uid, phase, message))
        except ProfilingFailed as failed:
            outcome = failed
        except Exception as error:
            log.exception("profiling failed unexpectedly", request=key.name, namespace=key.namespace)
            outcome = ProfilingFailed("", _UNEXPECTED.format(error=error))
        if (work := self._works.get(uid)) is not None:
            work.outcome = outcome
            self._moved(work.key)

    def _advance(self, uid: str, phase: ProfilingPhase, message: str) -> None:
        if (work := self._works.get(uid)) is not None and work.step != (phase, message):
            work.step = (phase, message)
            self._moved(work.key)
