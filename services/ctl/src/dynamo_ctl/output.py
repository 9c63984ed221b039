"""Output for people and for programs: aligned columns like kubectl's, ages, and consoles that recognize a terminal.

Others, such as tenants and engines, wrote much of the printed text. It must not mislead the reader, so all output goes
through `echo`, and each text that belongs on one line through `one_line`.
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

#: Prints a line of output.
Print = Callable[[str], object]
GAP = " " * 3
#: Width of a console that is not a terminal: lines stay whole, and the reader can cut them.
UNBOUNDED = 10_000
#: Colours and styles of a terminal, which `echo_log` prints unescaped.
_STYLES = re.compile(r"(\x1b\[[0-9;]{0,32}m)")


def own_command() -> str:
    """How a user calls this program from a shell: by its name if it is on PATH, otherwise by its path."""
    return "dynamoctl" if shutil.which("dynamoctl") else str(Path(sys.executable).with_name("dynamoctl"))


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text on standard output or (`err`) standard error. Control characters are escaped."""
    typer.echo(escaped(text), err=err, nl=nl)


def echo_error(text: str) -> None:
    """Print a text on standard error."""
    echo(text, err=True)


def echo_log(text: str) -> None:
    """Print a line of a log, which may contain colours."""
    typer.echo("".join(each if number % 2 else escaped(each) for number, each in enumerate(_STYLES.split(text))))


def one_line(text: str) -> str:
    """A foreign text for a table cell or after a colon: no part of it may appear as a separate line."""
    return escaped(text.replace("\n", "\\n").replace("\t", "\\t"))


def with_reason(reason: str, message: str) -> str:
    """The message after its reason, unless the message names the reason itself, as those about several components do."""
    return message if f" {reason}: " in f" {message}" else ": ".join(filter(None, (reason, message)))


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, left aligned, without trailing blanks. Every cell is one line."""
    table = [list(map(one_line, row)) for row in (header, *rows)]
    widths = [max(len(row[index]) for row in table) for index in range(len(header))]
    return [padded(row, widths) for row in table]


def padded(row: Sequence[str], widths: Sequence[int]) -> str:
    """A line of a table whose columns have these widths."""
    return GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def object_list(objects: list[KubeObject]) -> KubeObject:
    """Several objects as one List, like kubectl prints them."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}


def encoded(obj: KubeObject, output: str, *, stream: bool = False) -> str:
    """An object as `json` or `yaml`. `stream`: as one line, or as one YAML document."""
    if output == "json":
        return json.dumps(obj, indent=None if stream else 2, ensure_ascii=False)
    return ("---\n" if stream else "") + to_yaml(obj).rstrip("\n")


def age(since: str, now: datetime | None = None) -> str:
    """The time since an RFC 3339 timestamp: `12s`, `5m`, `3h`, `2d`; `-` if the timestamp is missing."""
    if not since:
        return "-"
    seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(since)).total_seconds()
    return span(seconds)


def span(seconds: float) -> str:
    """Seconds in the largest suitable unit, like kubectl: two minutes are 120s, ten are 10m."""
    whole = max(0, int(seconds))
    if whole <= 120:
        return f"{whole}s"
    if whole < 3 * 3600:
        return f"{whole // 60}m"
    if whole < 2 * 86400:
        return f"{whole // 3600}h"
    return f"{whole // 86400}d"


def day(moment: datetime, now: datetime | None = None) -> str:
    """The date of a moment, followed by a blank; empty for today. In local time."""
    local = moment.astimezone()
    return "" if local.date() == (now or datetime.now(UTC)).astimezone().date() else f"{local:%Y-%m-%d} "


def console() -> Console:
    """A rich console. Without a terminal it has no colours and never wraps."""
    from rich.console import Console as RichConsole  # slow, and plain output does not need it

    plain = RichConsole(highlight=False)
    return plain if plain.is_terminal else RichConsole(highlight=False, width=UNBOUNDED, soft_wrap=True)
