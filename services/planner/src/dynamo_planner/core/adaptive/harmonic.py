"""Load that comes in waves: the period that explains the observed rates, and the wave that goes on."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

HARMONICS = 2
"""A wave and its first overtone: steep mornings and slow evenings are more than one sine."""
PERIODS = 48
"""Periods that are tried, evenly by their logarithm."""
SHORTEST = 12
"""Samples of the shortest period: less is noise."""
LEAST_OBSERVED = 0.75
"""Share of a period that must have been observed before it is considered; how well it predicts decides then."""
FEWEST = 24
EXPLAINED = 0.6
"""Share of the variance that a wave has to explain."""
LIMIT = 720
"""Newest samples that it is fitted to."""


@dataclass(frozen=True, slots=True)
class Wave:
    """A mean and its swings."""

    period: float
    weights: tuple[float, ...]
    explained: float
    off: float
    """standard deviation of the samples from it, requests a second"""

    def at(self, when: float) -> float:
        """The rate, not below 0."""
        return max(0.0, float(_columns(np.array([when]), self.period, (len(self.weights) - 1) // 2)[0] @ self.weights))


def find_wave(times: Array, rates: Array) -> Wave | None:
    """The wave that explains the samples best; None where no wave does, or too little was observed."""
    times, rates = times[-LIMIT:], rates[-LIMIT:]
    if times.size < FEWEST:
        return None
    span = float(times[-1] - times[0])
    step = span / (times.size - 1)
    shortest, longest = SHORTEST * step, span / LEAST_OBSERVED
    spread = float(((rates - rates.mean()) ** 2).sum())
    if longest <= shortest or spread <= 0:
        return None
    best: Wave | None = None
    for period in np.geomspace(shortest, longest, PERIODS):
        best = _better(best, _fit(times, rates, float(period), spread))
    assert best is not None
    # Between the periods tried, twice finer: a period off by some percent is out of step soon.
    for width in (0.04, 0.01):
        for period in np.linspace(best.period * (1 - width), best.period * (1 + width), 7):
            best = _better(best, _fit(times, rates, float(period), spread))
    return best if best.explained >= EXPLAINED else None


def _better(best: Wave | None, other: Wave) -> Wave:
    return other if best is None or other.explained > best.explained else best


def _fit(times: Array, rates: Array, period: float, spread: float) -> Wave:
    # Overtones of a wave that was not observed whole could be anything.
    harmonics = HARMONICS if times[-1] - times[0] >= 1.25 * period else 1
    columns = _columns(times, period, harmonics)
    # A little pull to the mean keeps waves that were observed in part from swinging far.
    pull = 0.02 * times.size * np.diag([0.0] + [1.0] * (columns.shape[1] - 1))
    weights = np.linalg.solve(columns.T @ columns + pull, columns.T @ rates)
    left = float(((rates - columns @ weights) ** 2).sum())
    return Wave(period, tuple(weights.tolist()), 1 - left / spread, float(np.sqrt(left / times.size)))


def _columns(times: Array, period: float, harmonics: int) -> Array:
    angles = 2 * np.pi * times / period
    waves = [wave(k * angles) for k in range(1, harmonics + 1) for wave in (np.sin, np.cos)]
    return np.column_stack([np.ones_like(times), *waves])
