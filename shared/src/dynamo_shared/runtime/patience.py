"""How long bookkeeping may wait: not at all when little happens, and longer the more happens at once.

What people wait for is done first; what only tells of it follows when the burst is over. Never longer than `MOST`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

#: For how long something counts as happening at once with the next, and how much each of them adds. Seconds.
WINDOW, EACH = 1.0, 0.004
#: The longest wait. Seconds.
MOST = 2.0


class Patience:
    """Counts what happened lately."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=int(MOST / EACH))

    def after_one_more(self) -> float:
        """Something happened: seconds that what follows from it should wait for what else happens."""
        self._forget()
        self._recent.append(self._clock())
        return EACH * (len(self._recent) - 1)

    def after_these(self) -> float:
        """Seconds that what follows from what happened already should wait."""
        self._forget()
        return EACH * len(self._recent)

    def _forget(self) -> None:
        over = self._clock() - WINDOW
        while self._recent and self._recent[0] < over:
            self._recent.popleft()
