"""A latency as a sum of rising curves, one for each axis, through points that are noisy.

More work never takes less time: each curve is made of ramps whose slopes are not negative, so no noise, no missing point and
no extrapolation can break that. Slopes of neighbours are drawn together. Fits of several strengths and a plane are mixed as
they do best at points that were left out; a sum of rising curves rises, too. Errors count relative to the latency, since 2 ms
are much of 5 and nothing of 300. A point that spoils its neighbours is left out.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynamo_planner.core.estimator.ramps import Array, Mix, RampProblem, knots_of, ramps
from dynamo_planner.core.estimator.stacking import chosen

SHARE_OF_LOWEST = 0.1
"""Weights are read for one token, too: with nothing better known, work of no size takes this share of the least measured."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One rising curve: its knots, its height at each, and how it goes on beyond the last."""

    knots: list[float]
    heights: list[float]
    beyond: float

    def at(self, x: float) -> float:
        """Height at `x`; straight on beyond the last knot, nothing below 0."""
        knots, heights = self.knots, self.heights
        last = len(knots) - 1
        if x >= knots[last]:
            return heights[last] + (x - knots[last]) * self.beyond
        if x <= knots[0]:
            return 0.0
        i = bisect_right(knots, x) - 1
        return heights[i] + (heights[i + 1] - heights[i]) * (x - knots[i]) / (knots[i + 1] - knots[i])


@dataclass(frozen=True, slots=True)
class Surface:
    """Height above work of no size, and a curve for each axis."""

    base: float
    axes: tuple[Axis, ...]
    mix: Mix
    error: float
    """mean relative error at points that were left out; NaN where there were too few to leave any out"""
    outliers: int = 0
    """points that it does not follow, since they spoil their neighbours"""

    def at(self, *xs: float) -> float:
        """The latency at a place, milliseconds."""
        value = self.base
        for axis, x in zip(self.axes, xs, strict=True):
            value += axis.at(x)
        return value


def fit(
    columns: Sequence[Array],
    latency: Array,
    *,
    knots: Sequence[int],
    floor: float | None = None,
    mix: Mix | None = None,
    weights: Array | None = None,
) -> Surface:
    """The surface through points: a column for each axis, at most that many knots an axis.

    `floor` is the least that work of no size takes (ms). `mix` as chosen before; None: choose it by leaving points out.
    ValueError without points.
    """
    if not latency.size:
        raise ValueError("no points to fit")
    lowest = SHARE_OF_LOWEST * float(latency.min()) if floor is None else min(floor, float(latency.min()))
    places = [knots_of(column, most) for column, most in zip(columns, knots, strict=True)]
    matrix = np.hstack([np.ones((latency.size, 1)), *(ramps(c, k) for c, k in zip(columns, places, strict=True))])
    problem = RampProblem(
        matrix, latency, lowest, places, np.ones_like(latency) if weights is None else np.sqrt(weights)
    )
    if mix is None:
        mix, error, kept = chosen(problem, columns)
    else:
        error, kept = float("nan"), np.ones(latency.size, dtype=np.bool_)
    solution = problem.mixed(mix, kept)
    axes, start = [], 1
    for place in places:
        slopes = solution[start : start + len(place) - 1]
        start += len(place) - 1
        heights = np.concatenate([[0.0], np.cumsum(slopes * np.diff(place))])
        # A curve that happens to end flat says nothing of what comes beyond: there it rises as it did on the whole.
        whole = float(heights[-1] / place[-1])
        axes.append(Axis(place.tolist(), heights.tolist(), max(float(slopes[-1]), whole)))
    return Surface(float(solution[0]) + lowest, tuple(axes), mix, error, int((~kept).sum()))
