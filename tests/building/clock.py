"""Time as a test sets it."""

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class ManualClock:
    """Seconds since any beginning; they stand until a test moves `now`."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now
