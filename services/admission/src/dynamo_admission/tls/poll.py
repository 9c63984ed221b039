"""Doing one thing again and again, and sooner after a failure."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Awaitable, Callable

import structlog
from dynamo_shared.aio import Backoff, spread

#: Seconds before the first repetition of what failed; each further one waits twice as long.
_FIRST_RETRY = 1.0

log = structlog.get_logger("dynamo.admission")


async def poll(step: Callable[[], Awaitable[None]], every: float, expires: Callable[[], float]) -> None:
    """Run `step` every so many seconds until cancelled. Failures are logged, with the end of the certificate in service."""
    backoff = Backoff(_FIRST_RETRY, every)
    while True:
        pause = every
        try:
            await step()
            backoff.reset()
        except Exception as error:  # also what `changed` raises, which is its owner's
            pause = backoff.next()
            until = datetime.datetime.fromtimestamp(expires(), datetime.UTC).isoformat()
            log.warning("certificates not checked", error=f"{type(error).__name__}: {error}", ends=until)
        # Replicas that were started together need not ask together.
        await asyncio.sleep(spread(pause, least=0.8))
