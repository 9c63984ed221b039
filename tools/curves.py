"""Draws curves for the documents: `docs/pictures/NAME.csv` as SVG, one chart per column, over the first column.

The first line has the names. A row with `goal` in the first column has the goals. Empty fields are omitted. The first
column has a logarithmic scale; the others begin at 0.
"""

import csv
import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GOAL = "goal"
WIDTH, HEIGHT, COLUMNS = 250, 170, 3
LEFT, RIGHT, TOP, BOTTOM = 14, 14, 40, 34
_STYLE = "font-family:sans-serif;font-size:11px"
_LINE, _GOAL, _TEXT = "#2a6fb0", "#b03a2a", "#333333"


@dataclass(frozen=True, slots=True)
class Chart:
    """One column: its name, its points, and its goal (None if there is none)."""

    name: str
    points: tuple[tuple[float, float], ...]
    goal: float | None = None


def read(text: str) -> tuple[str, list[Chart]]:
    """The name of the first column, and a chart for each of the others. ValueError for a field that is not a number."""
    header, *rows = list(csv.reader(text.splitlines()))
    goals = next((row for row in rows if row[0] == GOAL), [""] * len(header))
    measured = [row for row in rows if row[0] != GOAL]
    charts = []
    for column, name in enumerate(header[1:], start=1):
        points = tuple((float(row[0]), float(row[column])) for row in measured if row[column])
        charts.append(Chart(name, points, float(goals[column]) if goals[column] else None))
    return header[0], charts


def draw(source: Path) -> str:
    """A file of figures as SVG."""
    over, charts = read(source.read_text(encoding="utf-8"))
    rows = -(-len(charts) // COLUMNS)
    width, height = WIDTH * min(COLUMNS, len(charts)), HEIGHT * rows
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'style="{_STYLE}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, chart in enumerate(charts):
        row, column = divmod(number, COLUMNS)
        lines += [f'<g transform="translate({column * WIDTH} {row * HEIGHT})">', *_chart(chart, over), "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def _chart(chart: Chart, over: str) -> Iterator[str]:
    yield _text(LEFT, 16, chart.name, "start")
    low, high = (math.log10(edge(x for x, _ in chart.points)) for edge in (min, max))
    most = max([y for _, y in chart.points] + [chart.goal or 0]) or 1.0
    inner, bottom = WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low) / (high - low) if high > low else 0.5
        return LEFT + 16 + across * (inner - 32), bottom - y / most * (bottom - TOP)

    yield f'<path d="M{LEFT} {bottom}H{WIDTH - RIGHT}" stroke="{_TEXT}"/>'
    if chart.goal is not None:
        _, y = place(chart.points[0][0], chart.goal)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{_GOAL}" stroke-dasharray="4 3"/>'
        yield _text(WIDTH - RIGHT, y - 3, f"goal {chart.goal:g}", "end", _GOAL)
    places = [place(x, y) for x, y in chart.points]
    yield f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" fill="none" stroke="{_LINE}"/>'
    for (x, y), (value, figure) in zip(places, chart.points, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_LINE}"/>'
        yield _text(x, y - 6, f"{figure:g}", "middle", _LINE)
        yield _text(x, bottom + 14, f"{value:,.0f}", "middle")
    yield _text(WIDTH / 2, bottom + 28, over, "middle")


def _text(x: float, y: float, words: str, anchor: str, colour: str = _TEXT) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{html.escape(words)}</text>'
