"""Writes what is made of the tables: `python -m dynamo_shared.bus.generate` the AsyncAPI document, schemas,
golden messages and docs/reference/events.md.

With `--check` nothing is written: exit code 1 and the names of the files that differ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from dynamo_shared.api import generating
from dynamo_shared.bus import asyncapi, pages, samples, schemas

VERSION = "1.0.0"
"""Of the wire contract: the last number for texts, the middle one for additions, the first one for a v2 of the subjects."""

_HEADER = "# Generated from dynamo_shared.bus by `python -m dynamo_shared.bus.generate`. Do not edit.\n"


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file below the root of a checkout, with what should be in it."""
    proto = root / "proto"
    document = generating.yaml_text(asyncapi.document(VERSION))
    texts = {proto / "asyncapi.yaml": _HEADER + document}
    texts |= {proto / "schemas" / f"{name}.json": _json(schema) for name, schema in schemas.schemas().items()}
    texts |= {
        proto / "golden" / f"{name}.json": _json(msgspec.to_builtins(message))
        for name, message in samples.golden().items()
    }
    return texts | {root / "docs" / "reference" / "events.md": pages.events()}


def main(arguments: list[str] | None = None) -> int:
    """Command line; the exit code."""
    folders = (("proto/schemas", "*.json"), ("proto/golden", "*.json"))
    return generating.run("dynamo_shared.bus.generate", __doc__, outputs, arguments, folders=folders)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
