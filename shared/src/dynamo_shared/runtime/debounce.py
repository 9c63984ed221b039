"""How long reporting may wait: not at all if little happens, and until a burst is probably over if much happens.

Work that users wait for is done first; its reports follow, spread over time, so that they do not come at once either.
"""

from collections import deque
from collections.abc import Callable

#: Changes within this time belong to one burst. Seconds.
WINDOW = 1.0
#: Up to this many changes are not a burst.
FEW = 8
#: The wait of a burst, and the addition for each further change. Seconds.
HOLD, EACH = 1.0, 0.01
#: The longest wait. Seconds.
MOST = 3.0


class Debounce:
    """Counts recent changes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=int(MOST / EACH))

    def after_one_more(self) -> float:
        """Count one change; returns the seconds for which its report should wait for further changes."""
        self._recent.append(self._clock())
        return self.after_these()

    def after_these(self) -> float:
        """Seconds for which the report of the changes counted so far should wait."""
        over = self._clock() - WINDOW
        while self._recent and self._recent[0] < over:
            self._recent.popleft()
        many = len(self._recent) - FEW
        return min(MOST, HOLD + EACH * many) if many > 0 else 0.0
