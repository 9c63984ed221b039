"""Looking again and again, and sooner after what failed."""

from __future__ import annotations

import asyncio
import datetime
import random
from collections.abc import Awaitable, Callable

import structlog

#: Seconds before the first repetition of what failed; each further one waits twice as long.
_FIRST_RETRY = 1.0

log = structlog.get_logger("dynamo.admission")


async def keep_looking(look: Callable[[], Awaitable[None]], every: float, expires: Callable[[], float]) -> None:
    """Run `look` every so many seconds until cancelled. What fails is logged, with when what is served ends."""
    retry = _FIRST_RETRY
    while True:
        pause = every
        try:
            await look()
            retry = _FIRST_RETRY
        except Exception as error:  # also what `changed` raises, which is its owner's
            pause, retry = min(every, retry), min(every, retry * 2)
            until = datetime.datetime.fromtimestamp(expires(), datetime.UTC).isoformat()
            log.warning("certificates not looked after", error=f"{type(error).__name__}: {error}", ends=until)
        # A fifth of it at random: replicas that were started together need not ask together.
        await asyncio.sleep(pause * (0.8 + random.random() / 5))  # noqa: S311 - jitter, not a secret
