"""Displays the progress of long steps (download, build, start): a bar on a terminal, lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dynamo_devcluster import LineProgress
from dynamo_devcluster import Progress as Steps
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class BarProgress(Steps):
    """Steps as bars. A finished step becomes a line that stays."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def started(self, step: str) -> None:
        """Show the step. Its length is not known yet."""
        self._tasks[step] = self._progress.add_task(step, total=None, count="")

    def advanced(self, step: str, done: int, total: int, unit: str) -> None:
        """Move its bar."""
        if step not in self._tasks:
            self.started(step)
        count = f"{unit} {done}/{total}" if total else f"{unit} {done}"
        self._progress.update(self._tasks[step], completed=done, total=total or None, count=count)

    def finished(self, step: str, seconds: float) -> None:
        """Remove the bar and print the duration."""
        self.failed(step)
        self._progress.console.print(f"[green]✓[/] {step} [dim]{seconds:.1f} s[/]")

    def failed(self, step: str) -> None:
        """Remove the bar."""
        if (task := self._tasks.pop(step, None)) is not None:
            self._progress.remove_task(task)


@contextmanager
def showing(console: Console) -> Iterator[Steps]:
    """A Progress that displays on a console during this block."""
    if not console.is_terminal:
        yield LineProgress(sys.stderr if console.stderr else sys.stdout)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("[dim]{task.fields[count]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield BarProgress(progress)
