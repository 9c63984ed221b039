"""A latency as a sum of rising curves, one per axis, through noisy points.

More work never takes less time: each curve consists of ramps with non-negative slopes, so noise, missing points and
extrapolation cannot break this rule. Slopes of neighbours are smoothed. Fits of several smoothing strengths and a plane
are mixed with the weights that predict left-out points best; a sum of rising curves also rises. Errors are relative to
the latency, because 2 ms matter at 5 ms but not at 300 ms. Outliers, which distort the fit to their neighbours, are
left out.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynamo_planner.core.estimator.ramps import Array, Mix, RampProblem, knots_of, ramps
from dynamo_planner.core.estimator.stacking import chosen

SHARE_OF_LOWEST = 0.1
"""Reading the weights takes time even for one token: without better data, work of size 0 takes this share of the lowest
latency.
"""


@dataclass(frozen=True, slots=True)
class Axis:
    """One rising curve: its knots, its height at each, and its slope beyond the last."""

    knots: list[float]
    heights: list[float]
    beyond: float

    def at(self, x: float) -> float:
        """Height at `x`; linear beyond the last knot, 0 below 0."""
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
    """The height for work of size 0, and a curve for each axis."""

    base: float
    axes: tuple[Axis, ...]
    mix: Mix
    error: float
    """mean relative error at left-out points; NaN if there were too few points to leave any out"""

    def at(self, *xs: float) -> float:
        """The latency at a point, milliseconds."""
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
    """The surface through points: one column per axis, at most `knots` knots per axis.

    `floor`: the minimum for work of size 0 (ms). `mix`: a mix from an earlier fit; None: choose it by leaving points
    out.
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
        # A curve that ends flat by chance does not predict the region beyond: there, it rises with its mean slope.
        whole = float(heights[-1] / place[-1])
        axes.append(Axis(place.tolist(), heights.tolist(), max(float(slopes[-1]), whole)))
    return Surface(float(solution[0]) + lowest, tuple(axes), mix, error)
