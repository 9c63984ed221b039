"""What is remembered of each tick, as columns of one array: a tick that computes on hours of them does so at once."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Columns:
    """Rows of numbers in the order in which they came; the oldest can be dropped."""

    def __init__(self, width: int, most: int | None = None) -> None:
        """`most`: rows that are kept; None: as many as are not dropped."""
        self._most = most
        self._rows = np.empty((width, 64))
        self._first = self._end = 0

    def __len__(self) -> int:
        return self._end - self._first

    @property
    def all(self) -> Array:
        """By column and row, the oldest row first; valid until the next change."""
        return self._rows[:, self._first : self._end]

    def append(self, *row: float) -> None:
        """Take a row, as the newest."""
        if len(self) == self._most:
            self._first += 1
        if self._end == self._rows.shape[1]:
            self._make_room()
        self._rows[:, self._end] = row
        self._end += 1

    def drop(self, count: int) -> None:
        """Forget so many rows, the oldest."""
        self._first += count

    def _make_room(self) -> None:
        # Twice what is there: a row is moved once for each that is appended, at most.
        kept = self.all
        self._rows = np.empty((len(kept), max(64, 2 * len(self))))
        self._rows[:, : len(self)] = kept
        self._first, self._end = 0, len(self)


def total(values: Array) -> float:
    """Their sum, added one after another: a policy that runs again comes to the very same figures."""
    return float(values.cumsum()[-1]) if values.size else 0.0
