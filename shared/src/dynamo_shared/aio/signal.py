"""Waits with a time limit, for tasks that wait very often and rarely time out: one timer serves many waits."""

import asyncio


class Signal:
    """One task's signal, with waits of at most `seconds`; asyncio's event and time-out need twenty more calls per wait."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None
        self._due = 0.0
        """when the wait ends, or the last one would have ended"""
        self._timer: asyncio.TimerHandle | None = None

    def set(self) -> None:
        """End the wait; if no task waits, the next wait ends at once."""
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        """Make the next wait ignore earlier signals."""
        self._is_set = False

    async def wait(self) -> None:
        """Return when it is set; raises TimeoutError if that takes too long."""
        if self._is_set:
            return
        loop = asyncio.get_running_loop()
        self._due = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._ring)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _ring(self) -> None:
        """Postpone the timer if waits have ended since it was set; without a wait, do not restart it."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._due:
            self._timer = loop.call_at(self._due, self._ring)
        else:
            self._waiter.set_exception(TimeoutError())
