"""How long a replica may trust its lease: a pure calculation, without clock or server.

The server counts a lease's lifetime from when it handled the grant or keepalive, which is after the request was sent.
So `sent + lifetime` is never later than the server's end of the lease, however long the answer took. The margin covers
clocks that run at different speeds, and writes that are running when time runs out.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

#: Margin as a share of the lifetime, and the least margin in seconds.
MARGIN_SHARE = 0.2
LEAST_MARGIN = 1.0
#: Keepalives per lifetime: two may fail before the lease is lost.
KEEPALIVES = 3


@dataclass(frozen=True, slots=True)
class Term:
    """A lease and until when it may be trusted. Times are seconds of one clock."""

    lease: int
    ttl: float
    deadline: float

    @classmethod
    def granted(cls, lease: int, ttl: float, sent: float) -> Self:
        """The lease that was granted for a request sent at `sent`."""
        return cls(lease, ttl, sent + ttl - margin(ttl))

    def renewed(self, ttl: float, sent: float) -> Self:
        """The term after a keepalive that was sent at `sent`; answers may arrive out of order."""
        return replace(self, ttl=ttl, deadline=max(self.deadline, sent + ttl - margin(ttl)))

    def alive(self, now: float) -> bool:
        """Whether the server cannot have ended the lease yet."""
        return now < self.deadline

    @property
    def keepalive_every(self) -> float:
        """Seconds between keepalives."""
        return self.ttl / KEEPALIVES


def margin(ttl: float) -> float:
    """Seconds before the end of a lifetime at which it counts as over."""
    return min(ttl, max(LEAST_MARGIN, ttl * MARGIN_SHARE))


class FastestClock:
    """Seconds that pass at least as fast as on each of several clocks, and never go back.

    A machine's clock may stop while the machine is suspended or its virtual machine is paused, and the time of day is
    corrected afterwards. A lease is over when its time has passed on any of the clocks.
    """

    def __init__(self, *clocks: Callable[[], float]) -> None:
        self._clocks = clocks
        self._last = [clock() for clock in clocks]
        self._passed = 0.0

    def __call__(self) -> float:
        """Seconds since its creation."""
        now = [clock() for clock in self._clocks]
        self._passed += max(0.0, *(after - before for after, before in zip(now, self._last, strict=True)))
        self._last = now
        return self._passed


def _boot_time() -> float:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


#: Seconds that also pass while the machine sleeps or is paused, if it can count them: after that, no lease is held.
lease_clock = FastestClock(_boot_time, time.time)
