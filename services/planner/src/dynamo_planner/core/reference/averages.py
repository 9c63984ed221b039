"""Moving averages of what engines do, and the share of prefill work that the KV cache saves."""

from collections import deque

from dynamo_planner.core.observing import hit_rate


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


def prefill_share(rate: float | None) -> float:
    """The share of prefill work that a KV-cache hit rate leaves, 0.05 to 1. An unknown rate counts as 0."""
    return 1.0 - hit_rate(rate)
