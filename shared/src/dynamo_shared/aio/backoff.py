"""How long to wait before the next attempt, in one place.

A wait doubles with each failure up to a limit, and is spread at random: what failed together must not come back
together. Randomness decides nothing but this spread, so that it need not be a secret, and tests pass in their own.
"""

import random
from collections.abc import Callable
from typing import TypeAlias

Randomness: TypeAlias = Callable[[], float]
"""Returns a number from 0 to 1."""

#: A wait is at least this share of what it is computed as, and at most all of it.
LEAST_SHARE = 0.5
#: Doublings beyond these exceed every limit, and soon what a float can hold.
_MOST_DOUBLINGS = 62


def spread(
    seconds: float, *, least: float = LEAST_SHARE, most: float = 1.0, randomness: Randomness | None = None
) -> float:
    """`seconds` times a random number between `least` and `most`."""
    # Looked up at each call, so that a test may replace the module's source.
    chance = (randomness or random.random)()
    return seconds * (least + (most - least) * chance)


def delay(
    failures: int, first: float, last: float, randomness: Randomness | None = None, *, most: float = 1.0
) -> float:
    """Seconds to wait after so many failures in a row (1 or more): `first`, doubled each time up to `last`, spread."""
    doublings = min(max(failures, 1) - 1, _MOST_DOUBLINGS)
    return spread(min(last, first * 2.0**doublings), most=most, randomness=randomness)


class Backoff:
    """The waits between attempts at one thing. `last` may be changed while it is used."""

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
        """It failed: seconds until the next attempt."""
        self._failures += 1
        return delay(self._failures, self._first, self.last, self._randomness)

    def reset(self) -> None:
        """It succeeded: the next failure is a first one again."""
        self._failures = 0
