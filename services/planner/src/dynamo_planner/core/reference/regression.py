"""The time of an iteration, learned by ordinary least squares with an intercept (planner.md, section a.4)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_MOST_PARTS = 2**31 - 1
"""Parts of the range of a feature: the number of a bucket has 64 bits."""


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
        self._parts = min(max(1, round(buckets ** (1 / axes))), _MOST_PARTS)
        self._samples: list[EngineSample] = []
        self._features = np.empty((limit + 1, axes))
        """of the samples, row by row"""

    @property
    def samples(self) -> tuple[EngineSample, ...]:
        """All kept samples, oldest first."""
        return tuple(self._samples)

    def add(self, sample: EngineSample) -> None:
        """Add a sample, and drop one if there are too many."""
        self._features[len(self._samples)] = sample.features
        self._samples.append(sample)
        if len(self._samples) > self._limit:
            _, buckets, counts = np.unique(self._buckets(), return_inverse=True, return_counts=True)
            # Among equally full buckets, the one with the oldest sample.
            dropped = int(np.argmax(counts[buckets] == counts.max()))
            del self._samples[dropped]
            self._features[dropped:-1] = self._features[dropped + 1 :]

    def _buckets(self) -> npt.NDArray[np.int64]:
        # Buckets are recomputed each time, because the minimum and maximum change with the samples. Thousands of engines
        # may report between two ticks.
        lowest, highest = self._features.min(axis=0), self._features.max(axis=0)
        width = np.where(highest > lowest, highest - lowest, 1.0)
        parts = ((self._features - lowest) / width * self._parts).astype(np.int64)
        parts = np.minimum(parts, self._parts - 1)
        return np.asarray(parts @ self._parts ** np.arange(parts.shape[1]))


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
