"""Measured iterations, few but spread over the whole observed range (planner.md, section a.4)."""

from collections import Counter
from typing import NamedTuple


class EngineSample(NamedTuple):
    """One iteration: what it had to do, and how long it took (seconds)."""

    features: tuple[float, ...]
    wall: float


class BucketedSamples:
    """At most `limit` samples. The range of each feature is cut into equal parts, which together make `buckets`;
    when there is one sample too many, the oldest of the fullest bucket goes, so that rare loads are not forgotten.
    """

    def __init__(self, *, axes: int, limit: int, buckets: int) -> None:
        self._limit = limit
        self._parts = max(1, round(buckets ** (1 / axes)))
        self._samples: list[EngineSample] = []

    @property
    def samples(self) -> tuple[EngineSample, ...]:
        """All that are kept, oldest first."""
        return tuple(self._samples)

    def add(self, sample: EngineSample) -> None:
        """Keep a sample, and drop one where that is one too many."""
        self._samples.append(sample)
        if len(self._samples) > self._limit:
            buckets = self._buckets()
            counts = Counter(buckets)
            fullest = max(counts.values())
            # Of equally full buckets the one whose oldest sample is the oldest of all.
            self._samples.pop(next(index for index, bucket in enumerate(buckets) if counts[bucket] == fullest))

    def _buckets(self) -> list[tuple[int, ...]]:
        # Cut again each time: what is smallest and largest changes as samples come and go.
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
