"""The points that no other point beats in both dimensions: less x, more y (planner.md, sections b.4 and c.5, case 25)."""

from collections.abc import Sequence
from math import isnan


def pareto_front(x: Sequence[float], y: Sequence[float]) -> list[int]:
    """Indices of the points whose y is the largest of all points with the same or a smaller x, in ascending order of x.

    Ignores points with a NaN. Of equal points, the first counts. Raises ValueError if x and y differ in length.
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
