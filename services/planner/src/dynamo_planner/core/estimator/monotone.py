"""A latency as a sum of rising curves, one for each axis, through points that are noisy.

More work never takes less time: each curve is made of ramps whose slopes are not negative, so no noise, no missing point and
no extrapolation can break that. Slopes of neighbours are drawn together; how strongly, leaving points out decides. Errors
count relative to the latency, since 2 ms are much of 5 and nothing of 300.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

Array = npt.NDArray[np.float64]

SMOOTHNESS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
"""Weights of the drawing together that are tried, strongest first."""
FOLDS = 8
FEW = 6
"""With fewer points than this, leaving some out tells nothing."""
SMOOTH_IF_FEW = 0.3
SHARE_OF_LOWEST = 0.1
"""Weights are read for one token, too: with nothing better known, work of no size takes this share of the least seen."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated latency."""

    value: float
    """milliseconds"""
    extrapolated: bool = False
    """whether it lies outside of what was measured"""


@dataclass(frozen=True, slots=True)
class Axis:
    """One rising curve: its knots, its height at each, and how it goes on beyond the last."""

    knots: list[float]
    heights: list[float]
    beyond: float
    low: float
    """least measured value of the axis"""

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
    smoothness: tuple[float, ...]
    error: float
    """mean relative error at points that were left out; NaN where there were too few to leave any out"""
    points: int = field(default=0)

    def at(self, *xs: float) -> Estimate:
        """The latency at a place, and whether it was measured around there."""
        value, outside = self.base, False
        for axis, x in zip(self.axes, xs, strict=True):
            value += axis.at(x)
            outside = outside or x < axis.low or x > axis.knots[-1]
        return Estimate(value, outside)


def fit(
    columns: Sequence[Array],
    latency: Array,
    *,
    knots: Sequence[int],
    floor: float | None = None,
    smoothness: tuple[float, ...] | None = None,
    weights: Array | None = None,
) -> Surface:
    """The surface through points: a column for each axis, at most that many knots an axis.

    `floor` is the least that work of no size takes (ms). `smoothness` as found before; None: found by leaving points out.
    ValueError without points.
    """
    if not latency.size:
        raise ValueError("no points to fit")
    lowest = SHARE_OF_LOWEST * float(latency.min()) if floor is None else min(floor, float(latency.min()))
    places = [_knots(column, most) for column, most in zip(columns, knots, strict=True)]
    matrix = np.hstack([np.ones((latency.size, 1)), *(_ramps(c, k) for c, k in zip(columns, places, strict=True))])
    problem = _Problem(matrix, latency, lowest, places, np.ones_like(latency) if weights is None else np.sqrt(weights))
    error = float("nan")
    if smoothness is None:
        smoothness, error = problem.choose(_folds(columns))
    found = problem.solve(smoothness)
    axes, start = [], 1
    for column, place in zip(columns, places, strict=True):
        slopes = found[start : start + len(place) - 1]
        start += len(place) - 1
        heights = np.concatenate([[0.0], np.cumsum(slopes * np.diff(place))])
        # A curve that happens to end flat says nothing of what comes beyond: there it rises as it did on the whole.
        whole = float(heights[-1] / place[-1])
        axes.append(Axis(place.tolist(), heights.tolist(), max(float(slopes[-1]), whole), float(column.min())))
    return Surface(float(found[0]) + lowest, tuple(axes), smoothness, error, int(latency.size))


@dataclass(frozen=True)
class _Problem:
    matrix: Array
    latency: Array
    lowest: float
    places: list[Array]
    weights: Array

    def solve(self, smoothness: tuple[float, ...], kept: npt.NDArray[np.bool_] | slice = slice(None)) -> Array:
        scale = self.weights[kept] / self.latency[kept]
        penalty = self._penalty(smoothness)
        rows = np.vstack([self.matrix[kept] * scale[:, None], penalty])
        target = np.concatenate([(self.latency[kept] - self.lowest) * scale, np.zeros(len(penalty))])
        found: Array = nnls(rows, target, maxiter=50 * rows.shape[1])[0]
        return found

    def choose(self, folds: npt.NDArray[np.int_]) -> tuple[tuple[float, ...], float]:
        if self.latency.size < FEW:
            return (SMOOTH_IF_FEW,) * len(self.places), float("nan")
        best, least = (SMOOTH_IF_FEW,) * len(self.places), np.inf
        for smoothness in product(SMOOTHNESS, repeat=len(self.places)):
            left_out = np.empty_like(self.latency)
            for fold in range(FOLDS):
                out = folds == fold
                if out.any():
                    left_out[out] = self.matrix[out] @ self.solve(smoothness, ~out) + self.lowest
            error = float(np.abs(left_out / self.latency - 1).mean())
            if error < least - 1e-4:  # the smoother one where they are alike
                best, least = smoothness, error
        return best, least

    def _penalty(self, smoothness: tuple[float, ...]) -> Array:
        """Rows that draw slopes of neighbours together, in units of the median latency over the whole axis."""
        middle, start, rows = float(np.median(self.latency)), 1, []
        for place, strength in zip(self.places, smoothness, strict=True):
            count = len(place) - 1
            row = np.zeros((max(count - 1, 0), self.matrix.shape[1]))
            for i in range(count - 1):
                row[i, start + i], row[i, start + i + 1] = -1.0, 1.0
            rows.append(row * strength * float(place[-1] - place[0]) / middle)
            start += count
        return np.vstack(rows)


def _knots(column: Array, most: int) -> Array:
    """Places where slopes may change: 0, and points, evenly by their number."""
    distinct = np.unique(column[column > 0])
    if not distinct.size:
        return np.array([0.0, 1.0])
    if distinct.size > most:
        distinct = np.unique(np.quantile(column[column > 0], np.linspace(0, 1, most)))[1:]
    return np.concatenate([[0.0], distinct])


def _ramps(column: Array, places: Array) -> Array:
    """For each place, how much of each stretch between knots lies below it."""
    low, high = places[:-1], places[1:]
    ramps = np.clip(column[:, None] - low, 0, high - low)
    ramps[:, -1] += np.maximum(column - high[-1], 0)
    return ramps


def _folds(columns: Sequence[Array]) -> npt.NDArray[np.int_]:
    """Points in turn to folds, along the axes, so that no fold is a stretch of its own."""
    folds = np.empty(columns[0].size, dtype=np.int_)
    folds[np.lexsort([*columns][::-1])] = np.arange(columns[0].size) % FOLDS
    return folds
