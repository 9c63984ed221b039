"""Keeping a part of a process at work: what fails is reported and started again, and the other parts do not notice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from dynamo_shared.aio.backoff import Backoff
from dynamo_shared.aio.together import ended

#: Pause before a part that failed is started again, in seconds: the first, and the longest.
FIRST_PAUSE = 0.5
LAST_PAUSE = 30.0
#: A part that has run for so long is well: its next failure is a first one again. Seconds.
WELL_AFTER = 10.0


log = structlog.get_logger("dynamo.aio")


class FailureReporter(Protocol):
    """Takes note of how a part does. Must not raise."""

    def failed(self, part: str, error: Exception) -> None:
        """The part ended with an error, and will be started again."""
        ...

    def recovered(self, part: str) -> None:
        """The part that had failed works again."""
        ...


class LogReporter:
    """Reports to the log, for parts that have a health of their own."""

    def failed(self, part: str, error: Exception) -> None:
        """Log the error with its trace."""
        log.error("part failed, started again", part=part, exc_info=error)

    def recovered(self, part: str) -> None:
        """Log that it works."""
        log.info("part works again", part=part)


class EndedByItselfError(Exception):
    """A part that should run until cancelled has returned."""


async def supervised(
    part: str,
    work: Callable[[], Awaitable[object]],
    reporter: FailureReporter,
    *,
    backoff: Backoff | None = None,
    well_after: float = WELL_AFTER,
) -> None:
    """Run work until cancelled: whenever it fails, or returns, it is begun again after a pause that grows.

    Only an Exception counts as failure; what is meant to end the process does.
    """
    backoff = backoff if backoff is not None else Backoff(FIRST_PAUSE, LAST_PAUSE)
    while True:
        try:
            await _attempt(part, work, reporter, backoff, well_after)
        except Exception as error:
            reporter.failed(part, error)
            await asyncio.sleep(backoff.next())


async def _attempt(
    part: str, work: Callable[[], Awaitable[object]], reporter: FailureReporter, backoff: Backoff, well_after: float
) -> None:
    task = asyncio.ensure_future(work())
    try:
        if backoff.failures:
            await asyncio.wait((task,), timeout=well_after)
            if not task.done():
                backoff.reset()
                reporter.recovered(part)
        await asyncio.wait((task,))
    finally:
        await ended(task)
    if task.cancelled():
        # Not by the supervisor: a caller that cancels this part does so through the function that supervises it.
        raise EndedByItselfError("it was cancelled from inside")
    task.result()
    raise EndedByItselfError("it ended by itself")
