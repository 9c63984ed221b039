"""The documents: each page is found from the start page, and each command of dynamoctl in them is one that it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from dynamo_ctl.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


def commands() -> Iterator[tuple[str, str]]:
    """Page and command line of each `dynamoctl` in the documents' console blocks."""
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                for part in re.split(r"\s[|>]\s?", line.split("  #")[0].removeprefix("$ ")):
                    written = part.strip().removeprefix(".venv/bin/")
                    if written.startswith("dynamoctl "):
                        yield page.name, written


def test_every_page_is_on_the_start_page() -> None:
    start = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([a-z0-9-]+\.md)[)#]", start))
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} <= linked


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 120


def test_no_page_has_a_placeholder() -> None:
    assert [page.name for page in PAGES if re.search(r"MEASURED_|TODO|TBD|FIXME", page.read_text("utf-8"))] == []


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_a_command_of_dynamoctl_is_one_that_it_takes(page: str, line: str) -> None:
    command: Any = typer.main.get_command(app)
    words = shlex.split(line)
    context = command.context_class(command, info_name=words.pop(0))
    while hasattr(command, "get_command"):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"{page}: dynamoctl has no command {name}"
        command, context = found, found.context_class(found, info_name=name, parent=context)
    # The parser refuses unknown options; whether a named file exists is not a document's matter.
    command.make_parser(context).parse_args(words)
