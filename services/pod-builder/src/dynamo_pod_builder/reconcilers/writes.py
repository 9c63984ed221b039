"""Writes that are sent together: a refused one does not stop the others."""

import asyncio
from collections.abc import Awaitable, Iterable

from dynamo_pod_builder.reconcilers.refusals import REFUSALS, SeveralRefusals

#: The refusal of each write, in order; None if it was accepted.
Refusals = list[Exception | None]


async def refusals_of(writes: Iterable[Awaitable[object]]) -> Refusals:
    """Await writes that are sent together. When an error is raised, all of them have ended.

    Raises errors that a retry may fix, so that the queue retries soon.
    """
    refused: Refusals = []
    for result in await asyncio.gather(*writes, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, REFUSALS):
            raise result
        refused.append(result if isinstance(result, REFUSALS) else None)
    return refused


async def all_written(writes: Iterable[Awaitable[object]]) -> None:
    """Await writes like `refusals_of`, and raise what was refused."""
    if any(refused := await refusals_of(writes)):
        raise one_of(refused)


def one_of(refused: Refusals) -> Exception:
    """A single refusal unchanged, several as `SeveralRefusals`."""
    errors = [error for error in refused if error is not None]
    return errors[0] if len(errors) == 1 else SeveralRefusals(errors)
