"""Keeps a part of a process running: a failed part is reported and restarted, without effect on other parts."""

import asyncio
from collections.abc import Awaitable, Callable

from dynamo_shared.aio.backoff import Backoff
from dynamo_shared.aio.together import ended, endless

#: Pause before a failed part is restarted, in seconds: the first, and the longest.
FIRST_PAUSE = 0.5
LAST_PAUSE = 30.0
#: After this time a part counts as recovered: its next failure counts as the first. Seconds.
WELL_AFTER = 10.0


async def supervised(
    work: Callable[[], Awaitable[object]],
    failed: Callable[[Exception], None],
    recovered: Callable[[], None] = lambda: None,
    *,
    backoff: Backoff | None = None,
    well_after: float = WELL_AFTER,
) -> None:
    """Run work until cancelled: whenever it fails or returns, it is restarted after a growing pause.

    `failed` is called at each end, `recovered` when restarted work has run for a while; neither may raise. Only an
    Exception counts as a failure; an exception that is meant to end the process does end it.
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
