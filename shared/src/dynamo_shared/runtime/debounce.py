"""How long bookkeeping may wait: not at all when little happens, and until a burst is likely over when much does.

What people wait for is done first; what only reports it follows, spread out, so that it does not come at once either.
"""

from collections import deque
from collections.abc import Callable

#: For how long something counts as happening at once with the next. Seconds.
WINDOW = 1.0
#: So many at once are nothing special.
FEW = 8
#: What more of them wait, and how much each adds. Seconds.
HOLD, EACH = 1.0, 0.01
#: The longest wait. Seconds.
MOST = 3.0


class Debounce:
    """Counts what happened lately."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=int(MOST / EACH))

    def after_one_more(self) -> float:
        """Something happened: seconds that what follows from it should wait for what else happens."""
        self._recent.append(self._clock())
        return self.after_these()

    def after_these(self) -> float:
        """Seconds that what follows from what happened already should wait."""
        over = self._clock() - WINDOW
        while self._recent and self._recent[0] < over:
            self._recent.popleft()
        many = len(self._recent) - FEW
        return min(MOST, HOLD + EACH * many) if many > 0 else 0.0
