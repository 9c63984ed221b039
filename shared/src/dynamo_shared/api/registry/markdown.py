"""The registries as a page for people."""

from __future__ import annotations

from dynamo_shared.api.registry.catalog import Catalog

_HEAD = """\
# Labels, annotations, ports and environment variables

The names that Dynamo Platform, its users, Kubernetes and Dynamo's runtime have agreed on. Code takes them from
`dynamo_shared.api.registry`, and this page is printed from there by `python -m dynamo_shared.api.generate`.
"""


def page(catalogs: tuple[Catalog, ...]) -> str:
    """All registries in Markdown, one table each."""
    return "\n".join([_HEAD, *(_section(catalog) for catalog in catalogs)])


def _section(catalog: Catalog) -> str:
    lines = [
        f"## {catalog.title}",
        "",
        catalog.introduction,
        "",
        f"| {catalog.name_title} | Purpose | {catalog.values_title} | On | Set by | Read by |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        _row(f"`{entry.name}`", entry.purpose, entry.values, entry.where, entry.set_by, entry.read_by)
        for entry in catalog.entries
    ]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
