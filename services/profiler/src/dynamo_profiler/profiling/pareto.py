"""The points that no other point beats in both ways: less of x, more of y (planner.md, sections b.4 and c.5, case 25)."""

from collections.abc import Sequence
from math import isnan


def pareto_front(x: Sequence[float], y: Sequence[float]) -> list[int]:
    """Indices of the points that have the largest y of all with an x no larger, in ascending order of x.

    Points with a NaN are passed over. Of equal points the first is taken. ValueError where x and y are not of one length.
    """
    points = [
        (cost, gain, index) for index, (cost, gain) in enumerate(zip(x, y, strict=True)) if not isnan(cost + gain)
    ]
    points.sort(key=lambda point: (point[0], -point[1], point[2]))
    front: list[int] = []
    for _, gain, index in points:
        if not front or gain > y[front[-1]]:
            front.append(index)
    return front
