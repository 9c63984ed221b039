"""Chooses the mix of fits and the outliers, by the errors at points that were left out of a fit."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from dynamo_planner.core.estimator.ramps import PLANE, SMOOTHNESS, Array, Kept, Mix, RampProblem, Strength

FOLDS = 8
FEW = 6
"""With fewer points, leaving some out is not meaningful."""
SMOOTH_IF_FEW = 0.3
LEAST_SHARE = 0.02
"""Fits with a smaller weight are dropped to save time."""
SUM = 10.0
"""Weight of the condition that shares sum to one, relative to a point's relative error."""
BAD_ONE_IN = 9
"""One in so many points may be an outlier: if there are more, they reflect real behaviour."""
MOST_BAD = 8
"""...and the total maximum: each outlier costs dozens of fits to all points."""
SUSPECTS = 8
"""Candidates for outliers: the points with the largest errors in a fit to all points."""
OUTSIDE = 4.0
"""An outlier's error in a fit to the others is at least this multiple of their median error..."""
OUTSIDE_FROM = 0.15
"""...and at least this large..."""
SPOILS, SPOILS_AT_END = 0.8, 0.6
"""...and without it, the error at the other points falls at least to this factor. The second value is for first and
last points, which a fit to the others must extrapolate.
"""


def chosen(problem: RampProblem, columns: Sequence[Array]) -> tuple[Mix, float, Kept]:
    """The mix, its mean relative error at left-out points (NaN if there are too few points), and the points to keep."""
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
    """Weights of the fits by their predictions of left-out points, and the relative errors of the mix."""
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
    """A plane; curves with equal smoothing; curves with a less smooth last axis (tokens in the cache, not
    sequences).
    """
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
    """Mix, errors and points without the one whose removal improves the others' predictions most; None if there is no
    outlier.
    """
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
    """Assigns points to folds in turn along the axes, so that no fold is a contiguous range."""
    folds = np.empty(columns[0].size, dtype=np.int_)
    folds[np.lexsort([*columns][::-1])] = np.arange(columns[0].size) % FOLDS
    return folds
