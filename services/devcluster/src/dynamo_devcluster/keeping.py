"""Keeps long-running servers alive: restarts a server that dies, with the same settings.

Only `dynamoctl up` and `demo` use it. Tests stop servers on purpose.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from dynamo_shared.aio import Backoff, ended

from .errors import LocalClusterError
from .process import ManagedProcess

#: Number of consecutive deaths after which a server is given up; after WELL_AFTER seconds of running, the count begins
#: again.
MOST_IN_A_ROW = 3
WELL_AFTER = 60.0
#: First and longest pause before a restart. Seconds.
FIRST_PAUSE, LAST_PAUSE = 0.5, 10.0
#: Interval of checks of each server. Seconds.
CHECK_EVERY = 0.5


@asynccontextmanager
async def kept(
    processes: Sequence[ManagedProcess],
    report: Callable[[str], object],
    *,
    well_after: float = WELL_AFTER,
    first_pause: float = FIRST_PAUSE,
    check_every: float = CHECK_EVERY,
) -> AsyncIterator[None]:
    """Restart each process that ends by itself, and report it; a process that was stopped on purpose stays stopped.

    Cancels the block and raises LocalClusterError if a process dies again and again. Enter it after the servers have
    started, so that it ends before they are stopped.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_keep(each, report, well_after, Backoff(first_pause, LAST_PAUSE), check_every))
                for each in processes
            ]
            try:
                yield
            finally:
                await ended(*(task for task in tasks if not task.done()))
    except BaseExceptionGroup as failures:
        # The first error is the server's, or the block's; errors of the cancelled block come after it.
        raise failures.exceptions[0] from failures.exceptions[0].__cause__


async def _keep(
    process: ManagedProcess, report: Callable[[str], object], well_after: float, backoff: Backoff, check_every: float
) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(check_every)
        if not process.exited:
            continue
        if time.monotonic() - started >= well_after:
            backoff.reset()
        pause = backoff.next()
        if backoff.failures >= MOST_IN_A_ROW:
            raise LocalClusterError(
                f"{process.name} {process.exit_description}, and is not restarted after {backoff.failures} crashes in a row; "
                f"the end of {process.log}:\n{process.log_tail()}"
            )
        report(f"{process.name} {process.exit_description}; restarting; log: {process.log}")
        await asyncio.sleep(pause)
        if not process.exited:  # Someone has stopped or started it meanwhile.
            continue
        try:
            await process.start()
        except LocalClusterError as error:
            report(str(error))
        started = time.monotonic()
