"""How long a replica may trust its lease: a pure calculation, without clock or server.

The server counts a lease's lifetime from when it handled the grant or keepalive, which is after we sent it. So
`sent + lifetime` is never later than what the server counts, whatever the answer's way back took; the margin covers
clocks that run at different speeds and writes that are under way when time runs out.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

#: Margin as a share of the lifetime, and its least, in seconds.
MARGIN_SHARE = 0.2
LEAST_MARGIN = 1.0
#: Keepalives to a lifetime: two may fail before the lease is lost.
KEEPALIVES = 3


@dataclass(frozen=True, slots=True)
class Term:
    """A lease and until when it may be trusted. Times are seconds of one clock."""

    lease: int
    ttl: float
    deadline: float

    @classmethod
    def granted(cls, lease: int, ttl: float, sent: float) -> Self:
        """The lease that a request sent at `sent` was answered with."""
        return cls(lease, ttl, sent + ttl - margin(ttl))

    def renewed(self, ttl: float, sent: float) -> Self:
        """After a keepalive that was sent at `sent`; answers may come out of order."""
        return replace(self, ttl=ttl, deadline=max(self.deadline, sent + ttl - margin(ttl)))

    def alive(self, now: float) -> bool:
        """Whether the server cannot have ended the lease yet by its lifetime."""
        return now < self.deadline

    @property
    def keepalive_every(self) -> float:
        """Seconds from one keepalive to the next."""
        return self.ttl / KEEPALIVES


def margin(ttl: float) -> float:
    """Seconds before the end of a lifetime at which it counts as over."""
    return min(ttl, max(LEAST_MARGIN, ttl * MARGIN_SHARE))


class FastestClock:
    """Seconds that pass at least as fast as on each of several clocks, and never go back.

    A clock of the machine may stand still while the machine is suspended or its virtual machine is paused, where the time
    of day is set right afterwards. What has lost time by any of them is over.
    """

    def __init__(self, *clocks: Callable[[], float]) -> None:
        self._clocks = clocks
        self._last = [clock() for clock in clocks]
        self._passed = 0.0

    def __call__(self) -> float:
        """Seconds since it was made."""
        now = [clock() for clock in self._clocks]
        self._passed += max(0.0, *(after - before for after, before in zip(now, self._last, strict=True)))
        self._last = now
        return self._passed


def _boot_time() -> float:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


#: Seconds that pass also while the machine sleeps or is paused, where it can count them: a process that wakes up holds nothing.
lease_clock = FastestClock(_boot_time, time.time)
