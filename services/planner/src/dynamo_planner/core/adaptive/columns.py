"""The history of ticks, as columns of one array, so that a tick can compute on hours of it in one operation."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Columns:
    """Rows of numbers in order of arrival; the oldest can be dropped."""

    def __init__(self, width: int, most: int | None = None) -> None:
        """`most`: the largest number of rows to keep; None: rows are kept until they are dropped."""
        self._most = most
        self._rows = np.empty((width, 64))
        self._first = self._end = 0

    def __len__(self) -> int:
        return self._end - self._first

    @property
    def all(self) -> Array:
        """All values by column and row, oldest row first; valid until the next change."""
        return self._rows[:, self._first : self._end]

    def append(self, *row: float) -> None:
        """Append a row as the newest."""
        if len(self) == self._most:
            self._first += 1
        if self._end == self._rows.shape[1]:
            self._make_room()
        self._rows[:, self._end] = row
        self._end += 1

    def drop(self, count: int) -> None:
        """Drop this many of the oldest rows."""
        self._first += count

    def _make_room(self) -> None:
        # Twice the rows that are kept: on average, each row is moved at most once per appended row.
        kept = self.all
        self._rows = np.empty((len(kept), max(64, 2 * len(self))))
        self._rows[:, : len(self)] = kept
        self._first, self._end = 0, len(self)


def total(values: Array) -> float:
    """The sum, added in order: a policy that is replayed computes exactly the same figures."""
    return float(values.cumsum()[-1]) if values.size else 0.0
