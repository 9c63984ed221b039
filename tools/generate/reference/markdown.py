"""Markdown of the generated pages: page heads and tables."""

import re
from collections.abc import Iterable, Sequence

GENERATED = "<!-- Made by `make generate` from {source}; change it there. -->"


def page(title: str, source: str, *parts: str) -> str:
    """A page: title, source, and its parts, separated by empty lines."""
    return (
        "\n\n".join([f"# {title}", GENERATED.format(source=source), *(part.strip("\n") for part in parts if part)])
        + "\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; bars in cells are escaped."""
    return "\n".join([_row(head), "|" + "---|" * len(head), *(_row(row) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    """One line; text in angle brackets is a placeholder, not HTML, except `<br>`."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join(re.sub(r"<(?!br>)", "&lt;", part) if index % 2 == 0 else part for index, part in enumerate(parts))


def code(text: str) -> str:
    """Text formatted as code; empty text stays empty."""
    return f"`{text}`" if text else ""
