"""Periodic load: the period that explains the observed rates, and the wave that continues them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

HARMONICS = 2
"""A wave and its first overtone, as in `_waves`: steep mornings and slow evenings need more than one sine."""
PERIODS = 48
"""Periods that are tried, on a logarithmic scale."""
SHORTEST = 12
"""Samples in the shortest period: shorter periods are noise."""
LEAST_OBSERVED = 0.75
"""Share of a period that must have been observed before the period is considered; its prediction error decides then."""
FEWEST = 24
EXPLAINED = 0.6
"""Share of the variance that a wave has to explain."""
REGULAR = 0.9
"""Share of the variance beyond that of random arrivals that it has to explain. Regular bursts, a third of the time,
explain 0.86 of it; but a burst need not come again after the same time.
"""
LIMIT = 720
"""Newest samples that the wave is fitted to."""


@dataclass(frozen=True, slots=True)
class Wave:
    """A mean and its oscillations."""

    period: float
    weights: tuple[float, ...]
    explained: float
    off: float
    """standard deviation of the samples from the wave, requests a second"""

    def at(self, when: Array) -> Array:
        """The rates at given times, not below 0."""
        angles = 2 * np.pi * when / self.period
        mean, *swings = self.weights
        return np.maximum(0.0, mean + sum(weight * wave for weight, wave in zip(swings, _waves(angles), strict=False)))


def find_wave(times: Array, rates: Array) -> Wave | None:
    """The wave that explains the samples best; None if no wave explains enough, or there are too few samples."""
    times, rates = times[-LIMIT:], rates[-LIMIT:]
    if times.size < FEWEST:
        return None
    span = float(times[-1] - times[0])
    step = span / (times.size - 1)
    shortest, longest = SHORTEST * step, span / LEAST_OBSERVED
    spread = float(((rates - rates.mean()) ** 2).sum())
    if longest <= shortest or spread <= 0:
        return None
    best = _best(times, rates, np.geomspace(shortest, longest, PERIODS), spread)
    # Twice, refine around the best period: a period that is wrong by a few percent soon loses its phase.
    for width in (0.04, 0.01):
        near = np.linspace(best.period * (1 - width), best.period * (1 + width), 7)
        best = max(best, _best(times, rates, near, spread), key=lambda wave: wave.explained)
    chance = times.size * float(rates.mean()) / step
    return best if best.explained >= max(EXPLAINED, REGULAR * (1 - chance / spread)) else None


def _best(times: Array, rates: Array, periods: Array, spread: float) -> Wave:
    """The wave that explains most, among the periods; all are fitted at once."""
    # Overtones of a wave that was not observed completely are undetermined.
    whole = times[-1] - times[0] >= 1.25 * periods
    fits = [
        _fit(times, rates, chosen, harmonics, spread)
        for chosen, harmonics in ((periods[whole], HARMONICS), (periods[~whole], 1))
        if chosen.size
    ]
    return max(fits, key=lambda wave: wave.explained)


def _fit(times: Array, rates: Array, periods: Array, harmonics: int, spread: float) -> Wave:
    rows = np.ones((periods.size, 1 + 2 * harmonics, times.size))
    for number, wave in zip(range(2 * harmonics), _waves(2 * np.pi * times / periods[:, None]), strict=False):
        rows[:, 1 + number] = wave
    columns = rows.transpose(0, 2, 1)
    # A small pull towards the mean limits the amplitude of partly observed waves.
    pull = 0.02 * times.size * np.diag([0.0] + [1.0] * (2 * harmonics))
    weights = np.linalg.solve(rows @ columns + pull, (rows @ rates)[:, :, None])
    left = ((rates - (columns @ weights)[:, :, 0]) ** 2).sum(axis=1)
    best = int(left.argmin())
    return Wave(
        float(periods[best]),
        tuple(weights[best, :, 0].tolist()),
        1 - float(left[best]) / spread,
        float(np.sqrt(left[best] / times.size)),
    )


def _waves(angles: Array) -> Iterator[Array]:
    """Sine and cosine of the angles, and of twice the angles."""
    sine, cosine = np.sin(angles), np.cos(angles)
    yield from (sine, cosine)
    yield from (2 * sine * cosine, 1 - 2 * sine**2)
