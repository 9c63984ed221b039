"""Draws a Pareto front as characters, as an image, or as a page. Pure except for `save`, which writes the file."""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from dynamo_shared.api.objects import KubeObject

from dynamo_ctl.errors import CtlError
from dynamo_ctl.output import columns

_X, _Y = "tokensPerSecondPerUser", "tokensPerSecondPerGPU"
_X_TITLE, _Y_TITLE = "tokens/s/user", "tokens/s/GPU"
_HEIGHT = 16
_HEADER = ("", "BACKEND", "SERVING", "GPUS", "TTFT", "ITL", "TOKENS/S/GPU", "TOKENS/S/USER", "REQ/S", "KEEPS SLA")


@dataclass(frozen=True, slots=True)
class Drawn:
    """The content of a drawing: a title, and points with configuration, figures, and whether they are selected."""

    title: str
    points: list[KubeObject]

    @property
    def placed(self) -> list[tuple[int, KubeObject, tuple[float, float]]]:
        """The points with a position, each with its number in the table."""
        numbered = enumerate(self.points, 1)
        return [(number, point, at) for number, point in numbered if (at := _xy(point)) is not None]


def terminal(drawn: Drawn, width: int) -> list[str]:
    """The drawing and a table of the points."""
    lines = [drawn.title, ""]
    if placed := drawn.placed:
        lines += _canvas(placed, width)
    else:
        lines.append("no figures are available: the configuration was chosen by GPU memory only, or measured elsewhere")
    return [*lines, "", *table(drawn.points, marked=True)]


def table(points: list[KubeObject], *, marked: bool = False) -> list[str]:
    """The points as lines of a table, with figures and whether they are selected. Times are in milliseconds.

    `marked`: a number of two digits is followed by its mark in the drawing.
    """
    return columns(_HEADER, [_row(number, point, marked=marked) for number, point in enumerate(points, 1)])


def save(drawn: Drawn, file: Path) -> None:
    """Draw into a .png or .html file. Raises CtlError if the drawing library is missing or the file cannot be written."""
    draw = _png if file.suffix.lower() == ".png" else _html
    if not drawn.placed:
        raise CtlError("the request has no figures yet, so there is nothing to draw")
    try:
        draw(drawn, file)
    except OSError as error:
        raise CtlError(f"--file {file}: {error.strerror or error}") from error


def _xy(point: KubeObject) -> tuple[float, float] | None:
    x, y = point["figures"].get(_X), point["figures"].get(_Y)
    return None if x is None or y is None else (float(x), float(y))


def _mark(number: int, point: KubeObject) -> str:
    return "*" if point["selected"] else "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36]


def _canvas(placed: list[tuple[int, KubeObject, tuple[float, float]]], width: int) -> list[str]:
    most_x = max(x for _, _, (x, _) in placed) or 1.0
    most_y = max(y for _, _, (_, y) in placed) or 1.0
    margin = len(f"{most_y:.0f}") + 1
    wide = width - margin - 2
    rows = [[" "] * wide for _ in range(_HEIGHT)]
    # The selected point is drawn last, so that nothing hides it.
    for number, point, (x, y) in sorted(placed, key=lambda each: bool(each[1]["selected"])):
        row = _HEIGHT - 1 - round(y / most_y * (_HEIGHT - 1))
        rows[row][round(x / most_x * (wide - 1))] = _mark(number, point)
    labels = {0: f"{most_y:.0f}", _HEIGHT // 2: f"{most_y / 2:.0f}", _HEIGHT - 1: "0"}
    lines = [f"{'':{margin}} {_Y_TITLE}"]
    lines += [f"{labels.get(at, ''):>{margin}} |{''.join(row).rstrip()}" for at, row in enumerate(rows)]
    right = f"{most_x:.0f} {_X_TITLE}"
    return [*lines, f"{'':{margin}} +{'-' * wide}", f"{'':{margin}}  0{right:>{wide - 1}}"]


def _row(number: int, point: KubeObject, *, marked: bool = False) -> tuple[str, ...]:
    figures = point["figures"]

    def figure(name: str, digits: int = 1) -> str:
        value = figures.get(name)
        return "-" if value is None else f"{value:.{digits}f}"

    mark = "*" if point["selected"] else f" {_mark(number, point)}" if marked and number > 9 else ""
    return (
        f"{number}{mark}",
        figures.get("backend") or "-",
        figures.get("serving") or "-",
        str(figures.get("gpus") or "-"),
        figure("ttft"),
        figure("itl", 2),
        figure(_Y),
        figure(_X),
        figure("requestsPerSecond", 2),
        {True: "yes", False: "no"}.get(figures.get("meetsSLA"), "-"),
    )


def _png(drawn: Drawn, file: Path) -> None:
    import matplotlib as mpl  # a second of imports

    mpl.use("agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.add_subplot()
    for number, point, position in drawn.placed:
        marker = "*" if point["selected"] else "o" if point["figures"].get("serving") == "disagg" else "s"
        faint = 1.0 if point["figures"].get("meetsSLA") is not False else 0.4
        axes.scatter(*position, marker=marker, s=200 if point["selected"] else 50, alpha=faint, color="C0")
        axes.annotate(str(number), position, textcoords="offset points", xytext=(6, 4))
    # Names of models are not formulas.
    axes.set_title(drawn.title, parse_math=False)
    axes.set(xlabel=_X_TITLE, ylabel=_Y_TITLE, ylim=(0, None))
    axes.set_xlim(left=0)
    axes.grid(visible=True, alpha=0.3)
    axes.text(0.99, 0.98, "star: selected; round: disagg; square: agg; faint: misses the SLA", transform=axes.transAxes,
              ha="right", va="top", fontsize=8)  # fmt: skip
    figure.savefig(file, dpi=120)


def _html(drawn: Drawn, file: Path) -> None:
    import plotly.graph_objects as go  # a second of imports

    figure = go.Figure()
    for number, point, (x, y) in drawn.placed:
        figures = point["figures"]
        symbol = "star" if point["selected"] else "circle" if figures.get("serving") == "disagg" else "square"
        hover = "<br>".join(
            f"{title}: {cell}" for title, cell in zip(_HEADER[1:], _row(number, point)[1:], strict=True)
        )
        figure.add_scatter(
            x=[x],
            y=[y],
            mode="markers+text",
            text=[str(number)],
            textposition="top right",
            marker={"symbol": symbol, "size": 16 if point["selected"] else 10},
            opacity=0.4 if figures.get("meetsSLA") is False else 1.0,
            hovertext=[hover],
            hoverinfo="text",
            showlegend=False,
        )
    # Titles are escaped because plotly interprets HTML in them.
    figure.update_layout(title=escape(drawn.title), xaxis_title=_X_TITLE, yaxis_title=_Y_TITLE, template="plotly_white")
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(rangemode="tozero")
    # The page contains everything that it needs, so that it works without a network.
    figure.write_html(file, include_plotlyjs=True)
