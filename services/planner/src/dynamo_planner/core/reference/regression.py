"""The time of an iteration, learned by ordinary least squares with an intercept (planner.md, section a.4)."""

from collections import Counter
from typing import NamedTuple

import numpy as np


class EngineSample(NamedTuple):
    """One iteration: its work, and its duration (seconds)."""

    features: tuple[float, ...]
    wall: float


class BucketedSamples:
    """At most `limit` samples. The range of each feature is divided into equal parts, which together form `buckets`. If
    there is one sample too many, the oldest of the fullest bucket is dropped, so that rare loads are kept.
    """

    def __init__(self, *, axes: int, limit: int, buckets: int) -> None:
        self._limit = limit
        self._parts = max(1, round(buckets ** (1 / axes)))
        self._samples: list[EngineSample] = []

    @property
    def samples(self) -> tuple[EngineSample, ...]:
        """All kept samples, oldest first."""
        return tuple(self._samples)

    def add(self, sample: EngineSample) -> None:
        """Add a sample, and drop one if there are too many."""
        self._samples.append(sample)
        if len(self._samples) > self._limit:
            buckets = self._buckets()
            counts = Counter(buckets)
            fullest = max(counts.values())
            # Among equally full buckets, the one with the oldest sample.
            self._samples.pop(next(index for index, bucket in enumerate(buckets) if counts[bucket] == fullest))

    def _buckets(self) -> list[tuple[int, ...]]:
        # Buckets are recomputed each time, because the minimum and maximum change with the samples.
        axes = list(zip(*(sample.features for sample in self._samples), strict=True))
        lowest, highest = [min(axis) for axis in axes], [max(axis) for axis in axes]
        return [
            tuple(
                self._part(value, low, high) for value, low, high in zip(sample.features, lowest, highest, strict=True)
            )
            for sample in self._samples
        ]

    def _part(self, value: float, low: float, high: float) -> int:
        return min(self._parts - 1, int((value - low) / (high - low) * self._parts)) if high > low else 0


SHORTEST = 1e-6
"""Seconds; lower bound for an iteration, because a line may predict less for small loads."""
ROUNDING = 1e-12
"""Seconds per token or request: rounding errors of least squares for an exact zero."""
CLIPPED = -1e-6


class IterationModel:
    """A line (plane) through measured iterations, refitted on demand after new samples.

    `clipped`: features whose negative coefficient is set to 0. A negative coefficient of any other feature makes the
    model invalid, because more work never takes less time.
    """

    def __init__(
        self, *, axes: int, limit: int, buckets: int, least: int, clipped: frozenset[int] = frozenset()
    ) -> None:
        self._store = BucketedSamples(axes=axes, limit=limit, buckets=buckets)
        self._least = least
        self._clipped = clipped
        self._line: tuple[tuple[float, ...], float] | None = None
        self._stale = False

    @property
    def samples(self) -> tuple[EngineSample, ...]:
        """The learned samples."""
        return self._store.samples

    def learn(self, features: tuple[float, ...], wall: float) -> None:
        """Learn an iteration; `wall` in seconds, above 0."""
        self._store.add(EngineSample(features, wall))
        self._stale = True

    @property
    def ready(self) -> bool:
        """Whether there are enough samples, and a valid line."""
        if self._stale:
            self._line, self._stale = self._fit(), False
        return self._line is not None

    def wall(self, *features: float) -> float:
        """Predicted seconds of an iteration. Call it only if `ready`."""
        if not self.ready or self._line is None:
            raise RuntimeError("the model of an engine has too few observations for a prediction")
        coefficients, intercept = self._line
        work = sum(slope * value for slope, value in zip(coefficients, features, strict=True))
        return max(SHORTEST, intercept + work)

    def _fit(self) -> tuple[tuple[float, ...], float] | None:
        samples = self._store.samples
        if len(samples) < self._least:
            return None
        features = np.array([sample.features for sample in samples], dtype=np.float64)
        walls = np.array([sample.wall for sample in samples], dtype=np.float64)
        means = features.mean(axis=0)
        # Centred; among equally good lines, the one with the smallest slopes, so that features that only change
        # together share.
        slopes, *_ = np.linalg.lstsq(features - means, walls - walls.mean(), rcond=None)
        kept: list[float] = []
        for index, slope in enumerate(slopes.tolist()):
            if index in self._clipped:
                kept.append(0.0 if slope < CLIPPED else slope)
            elif slope < -ROUNDING:
                return None
            else:
                kept.append(max(0.0, slope))
        # The intercept stays that of the fit even if a slope is clipped, as in Dynamo's planner.
        return tuple(kept), float(walls.mean() - means @ slopes)
