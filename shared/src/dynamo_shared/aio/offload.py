"""Work whose time grows with user input: small inputs at once, large ones in a thread, a limited number at a time."""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from contextvars import copy_context
from typing import Any, TypeVar

from dynamo_shared.aio.lanes import Lanes


class Pauses:
    """Counts the work of one loop: `if pauses.due(size): await asyncio.sleep(0)`."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._done = 0

    def due(self, work: int = 1) -> bool:
        """Count this work, in the unit of `every`. Whether other tasks must run now."""
        self._done += work
        if self._done < self._every:
            return False
        self._done = 0
        return True


T = TypeVar("T")


class Offload:
    """Runs pure work so that it does not block the event loop.

    A thread takes turns with the loop every few milliseconds, so the loop need not wait for the end of the work. It
    costs a tenth of a millisecond, which small inputs avoid. `above`: the size in bytes above which a thread is used.
    """

    def __init__(self, *, above: int, at_once: int) -> None:
        self._above = above
        self._threads = ThreadPoolExecutor(at_once, "offload")
        self._left: set[asyncio.Task[None]] = set()
        """work that goes on without its caller"""
        # The threads limit the work of all lanes.
        self._lanes = Lanes(at_once=sys.maxsize)

    async def run(self, size: int, work: Callable[[], T], lane: str | None = None) -> T:
        """The result of the work on an input of this size; its errors are raised.

        Large work of one lane (a namespace) waits for the earlier work of that lane, and lanes take turns at the threads.
        Work that has begun is completed even if the caller is cancelled, and keeps its thread and the turn of its lane until
        then.
        """
        if size <= self._above:
            return work()
        async with AsyncExitStack() as turn:
            if lane is not None:
                await turn.enter_async_context(self._lanes.turn(lane))
            begun = self._threads.submit(copy_context().run, work)
            try:
                return await asyncio.wrap_future(begun)
            except asyncio.CancelledError:
                if begun.running():
                    left = asyncio.create_task(_ended(begun, turn.pop_all()))
                    self._left.add(left)
                    left.add_done_callback(self._left.discard)
                raise


async def _ended(work: Future[Any], turn: AsyncExitStack) -> None:
    async with turn:
        await asyncio.gather(asyncio.wrap_future(work), return_exceptions=True)
