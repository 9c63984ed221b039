"""Work that only one replica of a service does at a time: the owner of a key.

One replica decides all scale commands of the cluster, because budgets may span everything: the owner of the partition
of `("", "scale-commands")`. Partitions are claims bound to leases, so there are never two owners; commands that are not
done when the claim ends are delivered to the next owner. It counts the GPUs of budgets by STATE, which has
the writes of the former owner: `ReadOwnership` waits for it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from dynamo_shared.aio import ended
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases import Ownership

#: Interval of ownership checks, in addition to notifications. Seconds.
_CHECK_INTERVAL = 1.0


class Turn:
    """Runs work while a key is owned; before the key is released, ends the work and waits for its end."""

    def __init__(self, ownership: Ownership, key: ObjectKey, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._ownership = ownership
        self._key = key
        self._work = work
        self._task: asyncio.Task[Any] | None = None
        self._changed = asyncio.Event()
        ownership.on_gain(lambda _: self._changed.set())
        ownership.on_loss(self._lost)
        ownership.before_release(self._release)

    async def run(self) -> None:
        """Run until cancelled. Raises errors of the work."""
        try:
            while True:
                self._changed.clear()
                if self._ownership.owns(self._key):
                    await self._once()
                else:
                    await self._wait_for_change()
        finally:
            await self._end()

    async def _once(self) -> None:
        task = self._task = asyncio.create_task(self._work())
        while not task.done() and self._ownership.owns(self._key):
            waiting = asyncio.ensure_future(self._wait_for_change())
            try:
                await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await ended(waiting)
            self._changed.clear()
        if task.done() and not task.cancelled():
            task.result()
        await self._end()

    async def _wait_for_change(self) -> None:
        try:
            async with asyncio.timeout(_CHECK_INTERVAL):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _lost(self) -> None:
        if self._task is not None and not self._ownership.owns(self._key):
            self._task.cancel()
        self._changed.set()

    async def _release(self, gone: Callable[[ObjectKey], bool]) -> None:
        if gone(self._key):
            await self._end()

    async def _end(self) -> None:
        """Cancel the work once, and wait until it has ended: its cleanup takes some time."""
        if self._task is not None and not self._task.done():
            if not self._task.cancelling():
                self._task.cancel()
            await asyncio.wait({self._task})
