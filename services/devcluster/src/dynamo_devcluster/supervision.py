"""Supervises long-running servers: restarts a server that crashes, with the same command and data.

Only `dynamoctl up` and `demo` use it. Tests stop servers on purpose.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from dynamo_shared.aio import Backoff, ended

from .errors import LocalClusterError
from .process import ManagedProcess

#: Number of consecutive crashes after which a server is not restarted.
MAX_CRASHES = 3
#: A server that has run for this time starts again with a count of 0 crashes. Seconds.
STABLE_AFTER = 60.0
#: First and longest pause before a restart. Seconds.
FIRST_PAUSE, LAST_PAUSE = 0.5, 10.0
#: Interval at which each server is checked. Seconds.
CHECK_INTERVAL = 0.5


@asynccontextmanager
async def supervised(
    processes: Sequence[ManagedProcess],
    report: Callable[[str], object],
    *,
    stable_after: float = STABLE_AFTER,
    first_pause: float = FIRST_PAUSE,
    check_interval: float = CHECK_INTERVAL,
) -> AsyncIterator[None]:
    """During the block, restart each process that crashes, and report it. A process that `stop` or `kill` ended stays
    stopped.

    Cancels the block and raises LocalClusterError after MAX_CRASHES consecutive crashes of a process. Enter the block
    after the servers have started, so that it ends before they are stopped.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    _supervise(each, report, stable_after, Backoff(first_pause, LAST_PAUSE), check_interval)
                )
                for each in processes
            ]
            try:
                yield
            finally:
                await ended(*(task for task in tasks if not task.done()))
    except BaseExceptionGroup as failures:
        # The first error is the cause: the server's, or the block's. The cancelled block may add more errors.
        raise failures.exceptions[0] from failures.exceptions[0].__cause__


async def _supervise(
    process: ManagedProcess,
    report: Callable[[str], object],
    stable_after: float,
    backoff: Backoff,
    check_interval: float,
) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(check_interval)
        if not process.exited:
            continue
        if time.monotonic() - started >= stable_after:
            backoff.reset()
        pause = backoff.next()
        if backoff.failures >= MAX_CRASHES:
            raise LocalClusterError(
                f"{process.name} {process.exit_description}, and is not restarted after {backoff.failures} crashes in a row; "
                f"the end of {process.log}:\n{process.log_tail()}"
            )
        report(f"{process.name} {process.exit_description}; restarting; log: {process.log}")
        await asyncio.sleep(pause)
        if not process.exited:  # The caller has stopped or started it during the pause.
            continue
        try:
            await process.start()
        except LocalClusterError as error:
            report(str(error))
        started = time.monotonic()
