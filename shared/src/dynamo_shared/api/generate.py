"""Writes what is made of the types: `python -m dynamo_shared.api.generate` the CRDs and the page of registries.

With `--check` nothing is written: exit code 1 and the names of the files that differ.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from dynamo_shared.api.crds.build import DEFINITIONS, build, file_name
from dynamo_shared.api.registry import CATALOGS
from dynamo_shared.api.registry.markdown import page


class _PlainDumper(yaml.SafeDumper):
    """Writes a value out wherever it stands: anchors would be right, and unreadable in a CRD."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of PyYAML's interface
        return True


_HEADER = "# Generated from dynamo_shared.api by `python -m dynamo_shared.api.generate`. Do not edit.\n"


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file below the root of a checkout, with what should be in it."""
    crds = root / "shared" / "src" / "dynamo_shared" / "api" / "crds"
    texts = {
        crds / file_name(definition): _HEADER
        + yaml.dump(build(definition), Dumper=_PlainDumper, sort_keys=False, width=120, allow_unicode=True)
        for definition in DEFINITIONS
    }
    return texts | {root / "docs" / "registry.md": page(CATALOGS)}


def main(arguments: list[str] | None = None) -> int:
    """Command line; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m dynamo_shared.api.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a file differs")
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(__file__).resolve().parents[4],
        help="checkout (default: the one of this file)",
    )
    options = parser.parse_args(arguments)
    if not (options.root / "shared" / "pyproject.toml").is_file():
        parser.error(f"{options.root} is no checkout of the platform; name it with --root")
    stale = {
        path: text
        for path, text in outputs(options.root).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        sys.stdout.write(f"{'differs' if options.check else 'wrote'}: {path.relative_to(options.root)}\n")
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
