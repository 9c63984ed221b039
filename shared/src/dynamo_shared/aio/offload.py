"""Work whose time grows with what a user wrote: small inputs at once, large ones in a thread, few of them at a time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


class Offload:
    """Runs pure work so that it does not keep the event loop.

    A thread takes turns with the loop every few milliseconds, where the loop would wait for the end of the work; it costs
    a tenth of a millisecond, which small inputs are spared. `above`: the size in bytes from which it is worth that.
    """

    def __init__(self, *, above: int, at_once: int) -> None:
        self._above = above
        self._threads = ThreadPoolExecutor(at_once, "offload")

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """The result of the work on an input of a size; its errors are raised.

        Work that has begun ends even where the caller is cancelled, and keeps its thread until then.
        """
        if size <= self._above:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)
