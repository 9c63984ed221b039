"""One latency model: the profile gives its initial shape; observations give its level, and its shape where
they exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, log2

import numpy as np

from dynamo_planner.core.estimator.monotone import Surface, fit

FRESH = 0.1
"""Weight of the newest sample in the mean of a full cell."""
CELLS = 64
PER_DOUBLING = 2
"""Cells per doubling of an axis: steps of about 40 %, within which latency is almost linear."""


@dataclass(slots=True)
class Cell:
    """Samples of similar work, as geometric means."""

    place: tuple[float, ...]
    """logarithms of the axes"""
    latency: float
    """logarithm of milliseconds"""
    count: int = 1
    last: int = 0
    """number of the newest sample in this cell"""

    def values(self) -> tuple[float, ...]:
        """The values of the axes."""
        return tuple(exp(x) for x in self.place)

    def milliseconds(self) -> float:
        """The latency."""
        return exp(self.latency)


class SampleStore:
    """At most `CELLS` cells; a new cell replaces the one without samples for the longest time."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, ...], Cell] = {}
        self.count = 0

    def add(self, axes: tuple[float, ...], milliseconds: float) -> None:
        """Add a sample; axes and latency must be above 0."""
        self.count += 1
        key = tuple(round(PER_DOUBLING * log2(x)) for x in axes)
        place, latency = tuple(log(x) for x in axes), log(milliseconds)
        cell = self.cells.get(key)
        if cell is None:
            if len(self.cells) >= CELLS:
                del self.cells[min(self.cells, key=lambda k: self.cells[k].last)]
            self.cells[key] = Cell(place, latency, last=self.count)
            return
        cell.count += 1
        cell.last = self.count
        share = max(FRESH, 1 / cell.count)
        cell.place = tuple(old + share * (new - old) for old, new in zip(cell.place, place, strict=True))
        cell.latency += share * (latency - cell.latency)


LEAST_SAMPLES = 5
"""Fewer samples are not enough to describe an engine; the reference waits for the same number
(load_min_observations).
"""
REFIT_EVERY = 0.25
"""A model is refitted when its samples have grown by a quarter: at most a few dozen times in total."""
REFIT_LONGEST = 2000
"""...and after this many samples at the latest, because engines change."""
SCALE_LIMIT = 8.0
"""An engine that differs from its profile by more than this factor is another engine; the level is limited to it."""
TRUST = 2.0
"""Weight of a cell of samples relative to a point of the profile."""
USABLE_ERROR = 0.03
"""If samples are within this relative error of the model, the model stays unchanged."""


class LatencyModel:
    """Milliseconds by one or more axes, all above 0. Not ready until it has enough points or samples."""

    def __init__(
        self,
        points: Sequence[tuple[tuple[float, ...], float]],
        *,
        knots: tuple[int, ...],
        floor: float | None = None,
        least_samples: int = LEAST_SAMPLES,
    ) -> None:
        self._points = points
        self._knots = knots
        self._floor = floor
        self._least = max(1, least_samples)
        self._store = SampleStore()
        self._fitted_at = 0
        self.scale = 1.0
        """observed level relative to the profile"""
        self._profile = self._fit(points, ()) if points else None
        self._surface = self._profile

    @property
    def ready(self) -> bool:
        """Whether the model can estimate."""
        self._refresh()
        return self._surface is not None

    @property
    def surface(self) -> Surface:
        """The fitted surface; ValueError before the model is ready."""
        self._refresh()
        if self._surface is None:
            raise ValueError("no data yet: no profile, and too few samples")
        return self._surface

    def at(self, *axes: float) -> float:
        """Milliseconds of work; ValueError before the model is ready."""
        return self.surface.at(*axes)

    def observe(self, axes: tuple[float, ...], milliseconds: float) -> None:
        """Learn from a sample; samples without size or time are ignored."""
        if milliseconds > 0 and all(x > 0 for x in axes):
            self._store.add(axes, milliseconds)

    def _refresh(self) -> None:
        count = self._store.count
        due = min(self._fitted_at * (1 + REFIT_EVERY), self._fitted_at + REFIT_LONGEST)
        if count < self._least or count < due or count == self._fitted_at:
            return
        self._fitted_at = count
        cells = list(self._store.cells.values())
        if self._profile is None:
            self._surface = self._fit((), cells)
            return
        profile = self._profile
        off = [(cell.latency - log(profile.at(*cell.values())), min(cell.count, 20)) for cell in cells]
        level = sum(ratio * weight for ratio, weight in off) / sum(weight for _, weight in off)
        level = min(max(level, -log(SCALE_LIMIT)), log(SCALE_LIMIT))
        self.scale = exp(level)
        worst = max(abs(ratio) for ratio, _ in off)
        self._surface = profile if worst < USABLE_ERROR else self._fit(self._points, cells)

    def _fit(self, points: Sequence[tuple[tuple[float, ...], float]], cells: Sequence[Cell]) -> Surface:
        samples = [(cell.values(), cell.milliseconds()) for cell in cells if cell.count > 1 or not points]
        together = [(axes, latency * self.scale) for axes, latency in points] + samples
        columns = [np.array([axes[i] for axes, _ in together]) for i in range(len(self._knots))]
        return fit(
            columns,
            np.array([latency for _, latency in together]),
            knots=self._knots,
            floor=None if self._floor is None else self._floor * self.scale,
            mix=self._profile.mix if points and cells and self._profile else None,
            weights=np.array([1.0] * len(points) + [TRUST] * len(samples)),
        )
