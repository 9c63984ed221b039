"""When a long loop lets other tasks run."""


class Pauses:
    """Counts the work of one loop: `if pauses.due(size): await asyncio.sleep(0)`."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._done = 0

    def due(self, work: int = 1) -> bool:
        """Count this work, in the unit of `every`. Whether other tasks must run now."""
        self._done += work
        if self._done < self._every:
            return False
        self._done = 0
        return True
