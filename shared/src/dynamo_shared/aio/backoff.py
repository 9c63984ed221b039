"""How long to wait before the next attempt, in one place.

A wait doubles with each failure up to a limit, and has random jitter: clients that failed together must not return
together. Randomness decides only the jitter, so it need not be secret, and tests pass in their own.
"""

import random
from collections.abc import Callable
from typing import TypeAlias

Randomness: TypeAlias = Callable[[], float]
"""Returns a number from 0 to 1."""

#: A wait is at least this share of its computed value, and at most all of it.
LEAST_SHARE = 0.5
#: More doublings exceed every limit, and soon the range of a float.
_MOST_DOUBLINGS = 62


def spread(
    seconds: float, *, least: float = LEAST_SHARE, most: float = 1.0, randomness: Randomness | None = None
) -> float:
    """`seconds` times a random number between `least` and `most`."""
    # Looked up at each call, so that a test can replace the module's source.
    chance = (randomness or random.random)()
    return seconds * (least + (most - least) * chance)


def delay(
    failures: int, first: float, last: float, randomness: Randomness | None = None, *, most: float = 1.0
) -> float:
    """Seconds to wait after this many failures in a row (1 or more): `first`, doubled up to `last`, with jitter."""
    doublings = min(max(failures, 1) - 1, _MOST_DOUBLINGS)
    return spread(min(last, first * 2.0**doublings), most=most, randomness=randomness)


class Backoff:
    """The waits between attempts at one operation. `last` may be changed at any time."""

    def __init__(self, first: float, last: float, randomness: Randomness | None = None) -> None:
        self._first = first
        self.last = last
        self._randomness = randomness
        self._failures = 0

    @property
    def failures(self) -> int:
        """Failures in a row."""
        return self._failures

    def next(self) -> float:
        """Record a failure. Returns the seconds until the next attempt."""
        self._failures += 1
        return delay(self._failures, self._first, self.last, self._randomness)

    def reset(self) -> None:
        """Record a success: the next failure counts as the first."""
        self._failures = 0

    def worked_for(self, seconds: float) -> bool:
        """Record how long the last attempt worked before it failed: a success only if not shorter than the longest wait.

        Returns whether it was one. An operation that begins well and fails at once would never wait longer.
        """
        is_success = seconds >= self.last
        if is_success:
            self.reset()
        return is_success
