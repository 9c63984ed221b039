"""Several collections followed at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any, NamedTuple, TypeAlias

from dynamo_shared.aio import ended
from dynamo_shared.api.objects import KubeObject

from dynamo_ctl.errors import CtlError

#: Changes that wait to be printed; a slow terminal holds what follows up, not the memory.
WAITING = 1000


class ObjectEvent(NamedTuple):
    """A change of an object of the resource called `kind`."""

    kind: str
    obj: KubeObject
    deleted: bool


Changes: TypeAlias = asyncio.Queue[ObjectEvent | CtlError]


async def merged(
    followers: Iterable[Callable[[Changes], Coroutine[Any, Any, None]]],
) -> AsyncGenerator[ObjectEvent]:
    """What all followers put into the queue that they are given, until cancelled. An error among it is raised."""
    queue: Changes = asyncio.Queue(WAITING)
    tasks = [asyncio.create_task(follow(queue)) for follow in followers]
    try:
        while True:
            item = await queue.get()
            if isinstance(item, CtlError):
                raise item
            yield item
    finally:
        await ended(*tasks)
