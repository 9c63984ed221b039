"""What the demonstration shows while graphs are on their way: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from dynamo_ctl.printing import span
from dynamo_ctl.summary import GraphLine

COLOURS = {"successful": "bold green", "pending": "yellow", "failed": "bold red"}
PER_SECOND = 10


class ProgressView(Protocol):
    """Shows how far graphs are; `ages` are seconds since creation by name, which stand still once a graph is up."""

    def show(self, lines: Sequence[GraphLine], ages: Mapping[str, float]) -> None:
        """Show them as they are now."""


class TableView:
    """A table that is drawn again for each change."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, lines: Sequence[GraphLine], ages: Mapping[str, float]) -> None:
        """Draw the table."""
        self._live.update(table(lines, ages), refresh=True)


class LineView:
    """A line for each change, with the seconds since the graph was created."""

    def __init__(self, out: Callable[[str], object]) -> None:
        self._out = out
        self._shown: dict[str, tuple[str, str]] = {}

    def show(self, lines: Sequence[GraphLine], ages: Mapping[str, float]) -> None:
        """Print what has changed."""
        for line in lines:
            now = (line.state, line.components)
            if self._shown.get(line.name) == now:
                continue
            self._shown[line.name] = now
            detail = f": {line.message}" if line.message else ""
            self._out(
                f"{line.name} ({line.backend}) {line.state} after {ages.get(line.name, 0.0):.1f} s, "
                f"components {line.components}{detail}"
            )


def table(lines: Sequence[GraphLine], ages: Mapping[str, float]) -> Table:
    """The table as it is now."""
    # Expanded, with a ratio for the message: it gives way on a narrow terminal, and the other columns do not.
    drawn = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in ("GRAPH", "BACKEND", "STATE", "COMPONENTS", "AGE"):
        drawn.add_column(name, no_wrap=True)
    drawn.add_column("MESSAGE", overflow="ellipsis", no_wrap=True, style="dim", ratio=1)
    for line in lines:
        state: Text | Spinner = Text(line.state, style=COLOURS.get(line.state, ""))
        if line.state not in {"successful", "failed"}:
            state = Spinner("dots", text=state)
        seconds = ages.get(line.name, 0.0)
        drawn.add_row(
            line.name,
            line.backend,
            state,
            line.components,
            f"{seconds:.1f}s" if seconds < 100 else span(seconds),
            # Without markup, of which `containers[main]` would be a tag.
            Text(line.message),
        )
    return drawn


@contextmanager
def showing(console: Console) -> Iterator[ProgressView]:
    """A view for a console; the table stays on the terminal when this ends."""
    if not console.is_terminal:
        yield LineView(partial(console.print, markup=False))
        return
    with Live(console=console, refresh_per_second=PER_SECOND) as live:
        yield TableView(live)
