"""Writes that are sent together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

from dynamo_pod_builder.reconcilers.refusals import REFUSALS, SeveralRefusals


async def all_written(writes: Iterable[Awaitable[None]]) -> None:
    """Await writes that are sent together; all have ended when an error is raised.

    What another try may mend is raised before any refusal, so that the queue comes back soon. A refusal is raised as it
    is, several of them as `SeveralRefusals`.
    """
    results = await asyncio.gather(*writes, return_exceptions=True)
    refusals: list[Exception] = []
    for result in results:
        if isinstance(result, REFUSALS):
            refusals.append(result)
        elif isinstance(result, BaseException):
            raise result
    if len(refusals) > 1:
        raise SeveralRefusals(refusals)
    if refusals:
        raise refusals[0]
