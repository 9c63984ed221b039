"""Which partitions a reader of STATE reads: those that its replica keeps, and for a while those that it kept."""

from collections.abc import Callable

FORGET_AFTER = 60.0
"""Seconds that objects of a partition stay after the replica gave it away: it may come back, as after a lease that was lost
for a moment, and then nothing has to be read again."""


class Share:
    """What is read, and what has been read completely. `keeps` says what is needed; `clock`: monotonic, in seconds."""

    def __init__(self, keeps: Callable[[], frozenset[int]], clock: Callable[[], float]) -> None:
        self._keeps = keeps
        self._clock = clock
        self._idle: dict[int, float] = {}
        """since when partitions that are read are not needed"""
        self.reading: frozenset[int] = frozenset()
        """partitions whose objects are taken in"""
        self.covered: frozenset[int] = frozenset()
        """partitions of which all objects are there"""

    def lacks(self) -> bool:
        """Whether something is needed that is not read."""
        return not self._keeps() <= self.reading

    def is_covered(self) -> bool:
        """Whether all that is needed is there."""
        return self._keeps() <= self.covered

    def begin(self) -> None:
        """A reading begins, of what is needed and what was until lately."""
        self.reading |= self._keeps()

    def adds(self) -> bool:
        """Whether the reading that is under way brings something that was not there before."""
        return not self.reading <= self.covered

    def complete(self) -> None:
        """All of the reading is there."""
        self.covered = self.reading

    def expire(self) -> frozenset[int]:
        """Partitions that have not been needed for `FORGET_AFTER`. They are read no more."""
        now, kept = self._clock(), self._keeps()
        self._idle = {each: self._idle.get(each, now) for each in self.reading - kept}
        expired = frozenset(each for each, since in self._idle.items() if now - since >= FORGET_AFTER)
        self.reading -= expired
        self.covered -= expired
        return expired
