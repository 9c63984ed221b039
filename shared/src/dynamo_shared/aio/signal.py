"""Waits with a time limit, for those who wait very often and seldom in vain: one timer serves many of them."""

import asyncio


class Signal:
    """What one task waits for, at most `seconds` each time; asyncio's event and time-out take twenty calls more a wait."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None
        self._due = 0.0
        """when the wait ends, or the last one would have"""
        self._timer: asyncio.TimerHandle | None = None

    def set(self) -> None:
        """Ends the wait; without one, the next wait ends at once."""
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        """The next wait is for what comes from now on."""
        self._is_set = False

    async def wait(self) -> None:
        """Returns when it is set; TimeoutError where that takes too long."""
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
        """Waits that have ended since the timer was set put it off; without a wait it is over."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._due:
            self._timer = loop.call_at(self._due, self._ring)
        else:
            self._waiter.set_exception(TimeoutError())
