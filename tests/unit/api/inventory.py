"""Parser of the reference's field inventory: one page for each kind, one table for each version."""

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dynamo_shared.api.resources import Resource

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "reference" / "crds"


class Row(NamedTuple):
    path: str
    type: str
    required: bool
    constraints: dict[str, Any]
    rules: list[str]


class Table(NamedTuple):
    """One version: its headline, its columns as (name, path, type), its fields."""

    storage: bool
    served: bool
    deprecated: bool
    subresources: list[str]
    columns: list[tuple[str, str, str]]
    scale: dict[str, str]
    rows: list[Row]


@cache
def short_names(resource: Resource) -> list[str]:
    """Short names of a kind."""
    match = re.search(r"short names (\[.*?\])", _page(resource))
    assert match
    return list(ast.literal_eval(match.group(1)))


@cache
def table(resource: Resource) -> Table:
    """The table of a kind in a version."""
    sections = re.split(r"^## ", _page(resource), flags=re.MULTILINE)
    text = next(part for part in sections if part.startswith(f"{resource.version} "))
    headline = re.search(r"storage=(\w+), served=(\w+), deprecated=(\w+), subresources=(\[.*?\])", text)
    assert headline
    columns = re.search(r"^Printer columns: (.*)$", text, re.MULTILINE)
    scale = re.search(r"^Scale: (.*)$", text, re.MULTILINE)
    return Table(
        headline.group(1) == "True",
        headline.group(2) == "True",
        headline.group(3) == "True",
        ast.literal_eval(headline.group(4)),
        re.findall(r"([\w-]+) \((\..+?), (\w+)\)(?:, |$)", columns.group(1)) if columns else [],
        json.loads(scale.group(1)) if scale else {},
        [row for line in text.splitlines() if (row := _row(line))],
    )


def _page(resource: Resource) -> str:
    return (FOLDER / f"{resource.plural}.md").read_text()


def _row(line: str) -> Row | None:
    cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    if len(cells) != 4 or cells[0] in ("field", "---"):
        return None
    constraints, rules = {}, []
    for item in filter(None, re.split(r"; (?=[A-Za-z-]+=|cel: )", cells[3])):
        if item.startswith("cel: "):
            rules.append(item.removeprefix("cel: "))
        else:
            key, _, value = item.partition("=")
            constraints[key] = json.loads(value)
    return Row(cells[0], cells[1], cells[2] == "yes", constraints, rules)
