"""Points as rows of ramps, and their fit with non-negative slopes."""

from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

Array = npt.NDArray[np.float64]
Kept = npt.NDArray[np.bool_]
Strength = tuple[float, ...]
"""of the smoothing, by axis; or `PLANE`"""
Mix = tuple[tuple[Strength, float], ...]
"""fits with their weights"""

SMOOTHNESS = (30.0, 3.0, 0.3, 0.03)
"""Smoothing weights that are mixed, strongest first."""
PLANE = (inf,)
"""...and one straight line per axis, like the reference's fit: the best choice for few and noisy points."""


@dataclass(frozen=True)
class RampProblem:
    """Points as rows of ramps, with the parameters of the fit."""

    matrix: Array
    latency: Array
    lowest: float
    places: list[Array]
    weights: Array

    def solve(self, strength: Strength, kept: Kept) -> Array:
        """Base and slopes fitted to the kept points, with one smoothing strength per axis."""
        scale = self.weights[kept] / self.latency[kept]
        target = (self.latency[kept] - self.lowest) * scale
        if strength == PLANE:
            columns = self._plane()
            lines = nnls(self.matrix[kept] @ columns * scale[:, None], target)[0]
            return np.asarray(columns @ lines)
        penalty = self._penalty(strength)
        rows = np.vstack([self.matrix[kept] * scale[:, None], penalty])
        solution: Array = nnls(rows, np.concatenate([target, np.zeros(len(penalty))]), maxiter=50 * rows.shape[1])[0]
        return solution

    def mixed(self, mix: Mix, kept: Kept) -> Array:
        """Weighted sum of the base and slopes of several fits."""
        return np.asarray(sum(weight * self.solve(strength, kept) for strength, weight in mix))

    def at(self, solution: Array, places: Kept) -> Array:
        """Latencies at points."""
        return np.asarray(self.matrix[places] @ solution + self.lowest)

    def _plane(self) -> Array:
        """Columns for a base and one slope per axis."""
        columns = np.zeros((self.matrix.shape[1], 1 + len(self.places)))
        columns[0, 0] = start = 1
        for axis, place in enumerate(self.places):
            columns[start : start + len(place) - 1, 1 + axis] = 1.0
            start += len(place) - 1
        return columns

    def _penalty(self, smoothness: tuple[float, ...]) -> Array:
        """Rows that smooth the slopes of neighbours, in units of the median latency over the whole axis."""
        middle, start, rows = float(np.median(self.latency)), 1, []
        for place, strength in zip(self.places, smoothness, strict=True):
            count = len(place) - 1
            row = np.zeros((max(count - 1, 0), self.matrix.shape[1]))
            for i in range(count - 1):
                row[i, start + i], row[i, start + i + 1] = -1.0, 1.0
            rows.append(row * strength * float(place[-1] - place[0]) / middle)
            start += count
        return np.vstack(rows)


def knots_of(column: Array, most: int) -> Array:
    """Places where slopes may change: 0, and points, evenly spaced by count."""
    distinct = np.unique(column[column > 0])
    if not distinct.size:
        return np.array([0.0, 1.0])
    if distinct.size > most:
        distinct = np.unique(np.quantile(column[column > 0], np.linspace(0, 1, most)))[1:]
    return np.concatenate([[0.0], distinct])


def ramps(column: Array, places: Array) -> Array:
    """For each value, the part of each interval between knots that lies below it."""
    low, high = places[:-1], places[1:]
    ramps = np.clip(column[:, None] - low, 0, high - low)
    ramps[:, -1] += np.maximum(column - high[-1], 0)
    return ramps
