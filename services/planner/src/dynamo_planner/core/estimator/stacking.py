"""Which fits are mixed, and which points are left out: decided at points that a fit was not given."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from dynamo_planner.core.estimator.ramps import PLANE, SMOOTHNESS, Array, Kept, Mix, RampProblem, Strength

FOLDS = 8
FEW = 6
"""With fewer points than this, leaving some out shows nothing."""
SMOOTH_IF_FEW = 0.3
LEAST_SHARE = 0.02
"""Fits of a smaller weight are not worth their time."""
SUM = 10.0
"""Weight of the condition that shares add up to one, next to a point's relative error."""
BAD_ONE_IN = 9
"""So many points may have one that is wrong: more are not outliers, but what engines do."""
MOST_BAD = 8
"""...and so many in all: each costs dozens of fits to all points."""
SUSPECTS = 8
"""Points that are tried: the ones that a fit to all is furthest from."""
OUTSIDE = 4.0
"""An outlier is so many times further from a fit to the others than these are on their median..."""
OUTSIDE_FROM = 0.15
"""...and so far at least..."""
SPOILS, SPOILS_AT_END = 0.8, 0.6
"""...and without it the others are predicted with so much of the error at most. The second for first and last points, which a
fit to the others has to guess."""


def chosen(problem: RampProblem, columns: Sequence[Array]) -> tuple[Mix, float, Kept]:
    """The mix, its mean relative error at points left out (NaN where there are too few), and the points to follow."""
    kept = np.ones(problem.latency.size, dtype=np.bool_)
    if problem.latency.size < FEW:
        return (((SMOOTH_IF_FEW,) * len(problem.places), 1.0),), float("nan"), kept
    folds = _folds(columns)
    mix, errors = _stacked(problem, folds, kept)
    for _ in range(min(max(1, problem.latency.size // BAD_ONE_IN), MOST_BAD)):
        better = _without_outlier(problem, folds, kept, errors, columns)
        if better is None:
            break
        mix, errors, kept = better
    return mix, float(errors[kept].mean()), kept


def _stacked(problem: RampProblem, folds: npt.NDArray[np.int_], kept: Kept) -> tuple[Mix, Array]:
    """Weights of fits by their predictions of points left out, and the relative errors of these."""
    fits = _fits(len(problem.places))
    predicted = np.column_stack([_left_out(problem, folds, kept, ((fit, 1.0),)) for fit in fits])
    ratios = predicted[kept] / problem.latency[kept, None]
    rows = np.vstack([ratios, np.full((1, len(fits)), SUM * len(ratios) ** 0.5)])
    shares = nnls(rows, np.append(np.ones(len(ratios)), SUM * len(ratios) ** 0.5))[0]
    shares[shares < LEAST_SHARE * shares.sum()] = 0.0
    shares /= shares.sum()
    mix = tuple((fit, float(share)) for fit, share in zip(fits, shares, strict=True) if share > 0)
    return mix, np.abs(predicted @ shares / problem.latency - 1)


def _fits(axes: int) -> list[Strength]:
    """A plane; curves that bend alike; curves of which only the last bends (tokens in the cache, not sequences)."""
    alike = [(strength,) * axes for strength in SMOOTHNESS]
    last = [(*(SMOOTHNESS[:1] * (axes - 1)), strength) for strength in SMOOTHNESS[1:]] if axes > 1 else []
    return [PLANE, *alike, *last]


def _left_out(problem: RampProblem, folds: npt.NDArray[np.int_], kept: Kept, mix: Mix) -> Array:
    predicted = np.empty_like(problem.latency)
    for fold in range(FOLDS):
        out = folds == fold
        if out.any():
            predicted[out] = problem.at(problem.mixed(mix, kept & ~out), out)
    return predicted


def _without_outlier(
    problem: RampProblem, folds: npt.NDArray[np.int_], kept: Kept, errors: Array, columns: Sequence[Array]
) -> tuple[Mix, Array, Kept] | None:
    """Mix, errors and points without the one that the others are predicted best without; None where none is an outlier."""
    best, least = None, 1.0
    at_end = np.any([(column == column.min()) | (column == column.max()) for column in columns], axis=0)
    suspects = [each for each in np.argsort(-errors) if kept[each] and errors[each] > OUTSIDE_FROM / 2]
    for suspect in suspects[:SUSPECTS]:
        rest = kept.copy()
        rest[suspect] = False
        mix, without = _stacked(problem, folds, rest)
        falls_to = float(without[rest].mean() / max(errors[rest].mean(), 1e-9))
        outside = without[suspect] > max(OUTSIDE * float(np.median(without[rest])), OUTSIDE_FROM)
        if outside and falls_to < min(least, SPOILS_AT_END if at_end[suspect] else SPOILS):
            best, least = (mix, without, rest), falls_to
    return best


def _folds(columns: Sequence[Array]) -> npt.NDArray[np.int_]:
    """Points in turn to folds, along the axes, so that no fold is a stretch of its own."""
    folds = np.empty(columns[0].size, dtype=np.int_)
    folds[np.lexsort([*columns][::-1])] = np.arange(columns[0].size) % FOLDS
    return folds
