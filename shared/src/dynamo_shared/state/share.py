"""Which partitions a reader of STATE reads: those that its replica keeps, and for a while those that it gave away."""

from collections.abc import Callable

FORGET_AFTER = 60.0
"""Seconds for which a partition's objects stay cached after the replica gave it away: if it returns, for example after
a briefly lost lease, nothing must be read again.
"""


class Share:
    """Partitions that are read, and those read completely. `keeps` returns the needed ones; `clock`: monotonic, in seconds."""

    def __init__(self, keeps: Callable[[], frozenset[int]], clock: Callable[[], float]) -> None:
        self._keeps = keeps
        self._clock = clock
        self._idle: dict[int, float] = {}
        """partition that is read but not needed -> since when it is not needed"""
        self.reading: frozenset[int] = frozenset()
        """partitions whose objects are cached"""
        self.covered: frozenset[int] = frozenset()
        """partitions whose objects have all been read"""

    def lacks(self) -> bool:
        """Whether a needed partition is not being read."""
        return not self._keeps() <= self.reading

    def is_covered(self) -> bool:
        """Whether all needed partitions have been read."""
        return self._keeps() <= self.covered

    def begin(self) -> None:
        """A reading begins, of the needed partitions and those that were needed recently."""
        self.reading |= self._keeps()

    def adds(self) -> bool:
        """Whether the current reading brings partitions that were not covered before."""
        return not self.reading <= self.covered

    def uncover(self, partitions: frozenset[int]) -> None:
        """What is cached of these partitions may be outdated until the current reading is complete."""
        self.covered -= partitions

    def complete(self) -> None:
        """The reading is complete."""
        self.covered = self.reading

    def expire(self) -> frozenset[int]:
        """Drop and return the partitions that have not been needed for `FORGET_AFTER`."""
        now, kept = self._clock(), self._keeps()
        self._idle = {each: self._idle.get(each, now) for each in self.reading - kept}
        expired = frozenset(each for each, since in self._idle.items() if now - since >= FORGET_AFTER)
        self.reading -= expired
        self.covered -= expired
        return expired
