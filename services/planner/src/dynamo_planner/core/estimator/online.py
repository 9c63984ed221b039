"""What engines were observed to do, in cells of alike work: bounded, and newer counts more."""

from dataclasses import dataclass
from math import exp, log, log2

FRESH = 0.1
"""Share of the newest sample in the mean of its cell, once the cell is filled."""
CELLS = 64
PER_DOUBLING = 2
"""Cells for each doubling of an axis: a step of some 40 %, within which latency is close to straight."""


@dataclass(slots=True)
class Cell:
    """Samples of alike work, as geometric means."""

    place: tuple[float, ...]
    """logarithms of the axes"""
    latency: float
    """logarithm of milliseconds"""
    count: int = 1
    last: int = 0
    """number of the newest sample that came here"""

    def values(self) -> tuple[float, ...]:
        """The axes."""
        return tuple(exp(x) for x in self.place)

    def milliseconds(self) -> float:
        """The latency."""
        return exp(self.latency)


class SampleStore:
    """At most `CELLS` cells; the one longest unseen makes room for a new one."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, ...], Cell] = {}
        self.count = 0

    def add(self, axes: tuple[float, ...], milliseconds: float) -> None:
        """Take a sample; axes and latency above 0."""
        self.count += 1
        key = tuple(round(PER_DOUBLING * log2(x)) for x in axes)
        place, latency = tuple(log(x) for x in axes), log(milliseconds)
        cell = self.cells.get(key)
        if cell is None:
            if len(self.cells) >= CELLS:
                del self.cells[min(self.cells, key=lambda k: self.cells[k].last)]
            self.cells[key] = Cell(place, latency, last=self.count)
            return
        cell.count += 1
        cell.last = self.count
        share = max(FRESH, 1 / cell.count)
        cell.place = tuple(old + share * (new - old) for old, new in zip(cell.place, place, strict=True))
        cell.latency += share * (latency - cell.latency)
