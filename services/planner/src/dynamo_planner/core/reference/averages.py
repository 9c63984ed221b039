"""Moving averages of what engines do, and the share of prefill work that the KV cache saves."""

from __future__ import annotations

from collections import deque
from math import isfinite

HIGHEST_HIT_RATE = 0.95
"""However often the cache hits, some prefill work is left."""


class MovingAverage:
    """Mean of the last values; zeros before the first other value are passed over. 0 without values."""

    def __init__(self, window: int) -> None:
        self._values: deque[float] = deque(maxlen=window)

    def add(self, value: float) -> None:
        """Count a value in."""
        if value != 0 or self._values:
            self._values.append(value)

    @property
    def value(self) -> float:
        """The mean."""
        return sum(self._values) / len(self._values) if self._values else 0.0


def prefill_share(hit_rate: float | None) -> float:
    """The share of prefill work that a KV-cache hit rate leaves, 0.05 to 1. An unknown rate counts as 0."""
    if hit_rate is None or not isfinite(hit_rate):
        return 1.0
    return 1.0 - min(max(hit_rate, 0.0), HIGHEST_HIT_RATE)
