"""The display of graphs while they start: a live table on a terminal, lines elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from dynamo_ctl.output import span
from dynamo_ctl.summary import GraphLine

COLOURS = {"successful": "bold green", "pending": "yellow", "failed": "bold red"}
PER_SECOND = 10


Show = Callable[[Sequence[GraphLine], Mapping[str, float]], None]
"""Shows the progress of graphs, with seconds since creation by name; the seconds stop when a graph is successful."""


def in_lines(out: Callable[[str], object]) -> Show:
    """Prints a line for each change, with the seconds since the creation of the graph."""
    shown: dict[str, tuple[str, str]] = {}

    def show(lines: Sequence[GraphLine], ages: Mapping[str, float]) -> None:
        for line in lines:
            now = (line.state, line.components)
            if shown.get(line.name) == now:
                continue
            shown[line.name] = now
            detail = f": {line.message}" if line.message else ""
            out(
                f"{line.name} ({line.backend}) {line.state} after {ages.get(line.name, 0.0):.1f} s, "
                f"components {line.components}{detail}"
            )

    return show


def table(lines: Sequence[GraphLine], ages: Mapping[str, float]) -> Table:
    """The current table."""
    # Expanded, with a ratio for the message: on a narrow terminal only the message's column becomes narrower.
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
            # Without markup, which would read `containers[main]` as a tag.
            Text(line.message),
        )
    return drawn


@contextmanager
def showing(console: Console) -> Iterator[Show]:
    """A view for a console. The table stays on the terminal at the end."""
    if not console.is_terminal:
        yield in_lines(partial(console.print, markup=False))
        return
    with Live(console=console, refresh_per_second=PER_SECOND) as live:
        yield lambda lines, ages: live.update(table(lines, ages), refresh=True)
