"""The promise: the share of requests recently kept within the targets, and the share that the next plan must keep.

The share is promised over an hour, not for each moment: requests missed while replicas start must be compensated by the
end of the hour. So the aim is above the promised share, and rises if that is not enough.
"""

import numpy as np

from dynamo_planner.core.adaptive.columns import Columns, total

WINDOW = 3600.0
"""Seconds over which the promise is measured: long enough to compensate for a burst."""
SLACK = 0.6
"""Part of the share that may miss which is reserved for the unforeseen: starting replicas, bursts, forecast errors."""
MOST = 0.995
"""The highest aim: beyond it, the tail costs a replica for each further tenth of a percent."""


class Promise:
    """Requests that arrived and that were kept, in the last `WINDOW` seconds."""

    def __init__(self, attainment: float) -> None:
        self.attainment = attainment
        """share of requests within both targets, 0 to 1"""
        self._ticks = Columns(3)
        """time, requests that arrived, requests that were kept"""
        self.kept: float | None = None
        """estimated share of the last hour's requests that were kept; None before the first request"""

    @property
    def behind(self) -> float:
        """Share of requests by which the last hour kept less than was promised; otherwise 0."""
        kept = self.kept
        return 0.0 if kept is None else max(0.0, self.attainment - kept)

    @property
    def aim(self) -> float:
        """Share of predicted requests that a plan must keep now.

        The shortfall of the first minutes is a small part of an hour and is compensated within that hour, so it is
        weighted by the part of the hour that has passed.
        """
        base = 1 - (1 - self.attainment) * (1 - SLACK)
        passed = float(np.ptp(self._ticks.all[0])) / WINDOW if len(self._ticks) else 0.0
        return min(max(base, self.attainment + self.behind * passed), max(MOST, base))

    @property
    def holds(self) -> float:
        """Share of requests that replicas are held for: the promised share, and more while the last hour kept less."""
        return min(self.attainment + self.behind, max(MOST, self.attainment))

    def observe(self, now: float, requests: float, share: float) -> None:
        """Add the requests since the last tick, and the share of them that was within both targets."""
        self._ticks.append(now, requests, requests * share)
        self._ticks.drop(int(np.searchsorted(self._ticks.all[0], now - WINDOW, side="right")))
        # Computed once a tick, which reads it several times. Not a running sum: it would accumulate rounding errors.
        came, kept = map(total, self._ticks.all[1:])
        self.kept = kept / came if came > 0 else None
