"""The points that no other point beats in both ways: less of x, more of y (planner.md, sections b.4 and c.5, case 25)."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple


class Front(NamedTuple):
    """A Pareto front in ascending order of x, and where its points stood in what was given."""

    x: list[float]
    y: list[float]
    indices: list[int]


def pareto_front(x: Sequence[float], y: Sequence[float]) -> Front:
    """Points that have the largest y of all with an x no larger; points with a NaN are passed over.

    Of equal points the first is taken. ValueError where x and y are not of one length.
    """
    points = [
        (cost, gain, index) for index, (cost, gain) in enumerate(zip(x, y, strict=True)) if not isnan(cost + gain)
    ]
    points.sort(key=lambda point: (point[0], -point[1], point[2]))
    front = Front([], [], [])
    for cost, gain, index in points:
        if not front.y or gain > front.y[-1]:
            front.x.append(cost)
            front.y.append(gain)
            front.indices.append(index)
    return front
