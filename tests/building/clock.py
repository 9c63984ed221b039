"""A clock that a test sets."""

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class ManualClock:
    """Seconds since an arbitrary start; they change only when a test sets `now`."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now
