"""Pareto fronts: points of which no other is better in one respect and as good in the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan


def pareto_front(xs: Sequence[float], ys: Sequence[float]) -> tuple[list[float], list[float], list[int]]:
    """The front of least x and greatest y by ascending x: its xs, its ys, and their places in what was given.

    Points without a number in either are left out. Of equal points the first is kept.
    """
    order = sorted(
        (index for index, (x, y) in enumerate(zip(xs, ys, strict=True)) if not isnan(x) and not isnan(y)),
        key=lambda index: (xs[index], -ys[index], index),
    )
    kept: list[int] = []
    for index in order:
        if not kept or ys[index] > ys[kept[-1]]:
            kept.append(index)
    return [xs[index] for index in kept], [ys[index] for index in kept], kept
