"""Keeping a part of a process at work: what fails is reported and started again, and the other parts do not notice."""

import asyncio
from collections.abc import Awaitable, Callable

from dynamo_shared.aio.backoff import Backoff
from dynamo_shared.aio.together import ended, endless

#: Pause before a part that failed is started again, in seconds: the first, and the longest.
FIRST_PAUSE = 0.5
LAST_PAUSE = 30.0
#: A part that has run for so long is well: its next failure is a first one again. Seconds.
WELL_AFTER = 10.0


async def supervised(
    work: Callable[[], Awaitable[object]],
    failed: Callable[[Exception], None],
    recovered: Callable[[], None] = lambda: None,
    *,
    backoff: Backoff | None = None,
    well_after: float = WELL_AFTER,
) -> None:
    """Run work until cancelled: whenever it fails, or returns, it is begun again after a pause that grows.

    `failed` takes note of each end, `recovered` of work that went on for a while after one; neither must raise.
    Only an Exception counts as failure; what is meant to end the process does.
    """
    backoff = backoff if backoff is not None else Backoff(FIRST_PAUSE, LAST_PAUSE)
    while True:
        try:
            await _attempt(work, recovered, backoff, well_after)
        except Exception as error:
            failed(error)
            await asyncio.sleep(backoff.next())


async def _attempt(
    work: Callable[[], Awaitable[object]], recovered: Callable[[], None], backoff: Backoff, well_after: float
) -> None:
    task = asyncio.ensure_future(endless(work()))
    try:
        if backoff.failures:
            await asyncio.wait((task,), timeout=well_after)
            if not task.done():
                backoff.reset()
                recovered()
        await asyncio.wait((task,))
    finally:
        await ended(task)
    task.result()
