"""Rate limits."""

import time
from collections import OrderedDict
from collections.abc import Callable

from dynamo_shared.aio.turns import Lane


class RateLimit:
    """`burst` times at once, then `rate` times per second (a token bucket; its balance may be negative)."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._tokens = float(burst)
        self._updated = clock()

    def is_full(self) -> bool:
        """Whether all tokens are available, as if nothing had been counted."""
        return self._tokens + (self._clock() - self._updated) * self._rate >= self._burst

    def take(self) -> float:
        """Count one; returns how many seconds it must wait for its turn, 0 within the limit."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._rate) - 1
        self._updated = now
        return max(0.0, -self._tokens / self._rate)

    def give_back(self) -> None:
        """Undo the last count: a refused request does not delay later ones."""
        self._tokens += 1


class Budgets:
    """A rate limit per lane, so that failures of one lane do not delay others. Lanes without recent counts are dropped."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._limits: OrderedDict[Lane, RateLimit] = OrderedDict()

    def __len__(self) -> int:
        return len(self._limits)

    def take(self, lane: Lane) -> float:
        """Count one in a lane; returns how many seconds it must wait for its turn."""
        limit = self._limits.pop(lane, None) or RateLimit(self._rate, self._burst, self._clock)
        self._limits[lane] = limit
        # Check the least recently used one each time, so that only lanes in use are kept.
        oldest = next(iter(self._limits))
        if oldest != lane and self._limits[oldest].is_full():
            del self._limits[oldest]
        return limit.take()
