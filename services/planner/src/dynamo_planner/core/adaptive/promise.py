"""The promise: what share of requests was kept within the targets of late, and what share the next plan has to keep.

A share is a promise over an hour, not of each moment: what is missed while replicas start has to be made up for by the end of
the hour. So the aim lies above the promised share, and rises where that is not enough.
"""

import numpy as np

from dynamo_planner.core.adaptive.columns import Columns, total

WINDOW = 3600.0
"""Seconds over which the promise is held: long enough for a burst to be made up for."""
SLACK = 0.6
"""Of the share that may miss, so much is left for what no plan foresees: replicas that start, bursts, forecasts that are off."""
MOST = 0.995
"""The highest aim: the tail behind it costs a replica for each further tenth of a percent."""


class Promise:
    """Requests that were kept and that came, in the last `WINDOW` seconds."""

    def __init__(self, attainment: float) -> None:
        self.attainment = attainment
        """share of requests within both targets, 0 to 1"""
        self._ticks = Columns(3)
        """when, requests that came, requests that were kept"""
        self.kept: float | None = None
        """share of the requests of the last hour that were kept, as estimated; None before the first request"""

    @property
    def behind(self) -> float:
        """Share of requests by which the last hour kept less than was promised; 0 where it kept as many, or more."""
        kept = self.kept
        return 0.0 if kept is None else max(0.0, self.attainment - kept)

    @property
    def aim(self) -> float:
        """Share of predicted requests that a plan has to keep now.

        What the first minutes missed is little of an hour: it is made up for within that hour, so it counts as the part of the
        hour that has passed.
        """
        base = 1 - (1 - self.attainment) * (1 - SLACK)
        passed = float(np.ptp(self._ticks.all[0])) / WINDOW if len(self._ticks) else 0.0
        return min(max(base, self.attainment + self.behind * passed), max(MOST, base))

    @property
    def holds(self) -> float:
        """Share of requests that replicas are held for: what was promised, and more while the last hour kept less."""
        return min(self.attainment + self.behind, max(MOST, self.attainment))

    def observe(self, now: float, requests: float, share: float) -> None:
        """Take the requests since the last tick, and the share of them that was within both targets."""
        self._ticks.append(now, requests, requests * share)
        self._ticks.drop(int(np.searchsorted(self._ticks.all[0], now - WINDOW, side="right")))
        # Once a tick, which asks for it several times. Not as a running sum: rounding would stay in it.
        came, kept = map(total, self._ticks.all[1:])
        self.kept = kept / came if came > 0 else None
