"""Work whose time grows with user input: small inputs at once, large ones in a thread, a limited number at a time."""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from dynamo_shared.aio.lanes import Lanes

T = TypeVar("T")


class Offload:
    """Runs pure work so that it does not block the event loop.

    A thread takes turns with the loop every few milliseconds, so the loop need not wait for the end of the work. It
    costs a tenth of a millisecond, which small inputs avoid. `above`: the size in bytes above which a thread is used.
    """

    def __init__(self, *, above: int, at_once: int) -> None:
        self._above = above
        self._threads = ThreadPoolExecutor(at_once, "offload")
        # The threads limit the work of all lanes.
        self._lanes = Lanes(at_once=sys.maxsize)

    async def run(self, size: int, work: Callable[[], T], lane: str | None = None) -> T:
        """The result of the work on an input of this size; its errors are raised.

        Large work of one lane (a namespace) waits for the earlier work of that lane, and lanes take turns at the threads.
        Work that has begun is completed even if the caller is cancelled, and keeps its thread until then.
        """
        if size <= self._above:
            return work()
        if lane is None:
            return await self._in_thread(work)
        async with self._lanes.turn(lane):
            return await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)
