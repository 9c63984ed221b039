"""How long a replica may trust its lease: a pure calculation, without clock or server.

The server counts a lease's lifetime from when it handled the grant or keepalive, which is after we sent it. So
`sent + lifetime` is never later than what the server counts, whatever the answer's way back took; the margin covers
clocks that run at different speeds and writes that are under way when time runs out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

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
    def granted(cls, lease: int, ttl: float, sent: float) -> Term:
        """The lease that a request sent at `sent` was answered with."""
        return cls(lease, ttl, sent + ttl - margin(ttl))

    def renewed(self, ttl: float, sent: float) -> Term:
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


def lease_clock() -> float:
    """Seconds that pass also while the machine sleeps, where it can tell: a laptop that wakes up holds nothing."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()
