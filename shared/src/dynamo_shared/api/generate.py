"""Writes what is made of the types: `python -m dynamo_shared.api.generate` CRDs, schemas of contracts, docs/reference.

With `--check` nothing is written: exit code 1 and the names of the files that differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dynamo_shared.api import generating, reference
from dynamo_shared.api.crds.build import DEFINITIONS, build, file_name
from dynamo_shared.api.validation import documentation

_HEADER = "# Generated from dynamo_shared.api by `python -m dynamo_shared.api.generate`. Do not edit.\n"


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file below the root of a checkout, with what should be in it."""
    # The package brings them along for `dynamoctl crds`; a chart can only read files of its own folder.
    folders = (
        root / "shared" / "src" / "dynamo_shared" / "api" / "crds",
        root / "helm" / "dynamo-crds" / "definitions",
    )
    texts = {
        folder / file_name(definition): _HEADER + generating.yaml_text(build(definition))
        for definition in DEFINITIONS
        for folder in folders
    }
    rules = {root / "docs" / "validation.md": documentation.text()}
    return texts | reference.outputs(root) | rules


def main(arguments: list[str] | None = None) -> int:
    """Command line; the exit code."""
    folders = (
        ("docs/reference/kinds", "*.md"),
        ("proto/schemas/contracts", "*.json"),
        ("helm/dynamo-crds/definitions", "*.yaml"),
    )
    return generating.run("dynamo_shared.api.generate", __doc__, outputs, arguments, folders=folders)


if __name__ == "__main__":
    sys.exit(main())
