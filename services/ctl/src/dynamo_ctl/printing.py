"""Output for people and for programs: aligned columns as kubectl prints them, ages, and consoles that know a terminal.

Much of what is printed was written by others, such as tenants and engines. Who reads it must not be misled by it, so
everything goes through `echo`, and what stands on one line through `one_line`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.words import escaped
from dynamo_shared.api.yaml_output import to_yaml

if TYPE_CHECKING:
    from rich.console import Console

#: Takes a line of output.
Print = Callable[[str], object]
GAP = " " * 3
#: Width of a console that is not a terminal: lines are whole, and the reader can cut them.
UNBOUNDED = 10_000
#: Colours and styles of a terminal: they end with the line.
_STYLES = re.compile(r"(\x1b\[[0-9;]{0,32}m)")


def own_command() -> str:
    """How a user calls this program from a shell: by its name where that is on PATH, else by its path."""
    return "dynamoctl" if shutil.which("dynamoctl") else str(Path(sys.executable).with_name("dynamoctl"))


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, on standard output or (`err`) standard error, with control characters escaped."""
    typer.echo(escaped(text), err=err, nl=nl)


def echo_error(text: str) -> None:
    """Print a text on standard error."""
    echo(text, err=True)


def echo_log(text: str) -> None:
    """Print a line of a log, which may have colours."""
    typer.echo("".join(each if number % 2 else escaped(each) for number, each in enumerate(_STYLES.split(text))))


def one_line(text: str) -> str:
    """A text of others as it stands in a table or after a colon: no part of it looks like a line of its own."""
    return escaped(text.replace("\n", "\\n").replace("\t", "\\t"))


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, left aligned, without trailing blanks. A cell is one line, whatever it holds."""
    table = [list(map(one_line, row)) for row in (header, *rows)]
    widths = [max(len(row[index]) for row in table) for index in range(len(header))]
    return [padded(row, widths) for row in table]


def padded(row: Sequence[str], widths: Sequence[int]) -> str:
    """A line of a table whose columns have these widths."""
    return GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def object_list(objects: list[KubeObject]) -> KubeObject:
    """Objects as one, as kubectl prints several."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}


def encoded(obj: KubeObject, output: str, *, stream: bool = False) -> str:
    """An object as `json` or `yaml`; one of a stream as a line, or as a document."""
    if output == "json":
        return json.dumps(obj, indent=None if stream else 2, ensure_ascii=False)
    return ("---\n" if stream else "") + to_yaml(obj).rstrip("\n")


def age(since: str, now: datetime | None = None) -> str:
    """How long ago an RFC 3339 moment was: `12s`, `5m`, `3h`, `2d`; `-` where the moment is missing."""
    if not since:
        return "-"
    seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(since)).total_seconds()
    return span(seconds)


def span(seconds: float) -> str:
    """Seconds as the largest whole unit, as kubectl does it: two minutes are 120s, ten are 10m."""
    whole = max(0, int(seconds))
    if whole <= 120:
        return f"{whole}s"
    if whole < 3 * 3600:
        return f"{whole // 60}m"
    if whole < 2 * 86400:
        return f"{whole // 3600}h"
    return f"{whole // 86400}d"


def day(moment: datetime, now: datetime | None = None) -> str:
    """The date of a moment, and a blank; empty where that is today. In local time."""
    local = moment.astimezone()
    return "" if local.date() == (now or datetime.now(UTC)).astimezone().date() else f"{local:%Y-%m-%d} "


def console() -> Console:
    """A rich console; one that is not a terminal gets no colours and never wraps."""
    from rich.console import Console as RichConsole  # noqa: PLC0415 - slow, and plain output does without

    made = RichConsole(highlight=False)
    return made if made.is_terminal else RichConsole(highlight=False, width=UNBOUNDED, soft_wrap=True)
