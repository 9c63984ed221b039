"""Writes what is made of the tables: `python -m dynamo_shared.bus.generate` the AsyncAPI document, schemas, golden messages.

With `--check` nothing is written: exit code 1 and the names of the files that differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import yaml

from dynamo_shared.bus import asyncapi, samples, schemas

VERSION = "1.0.0"
"""Of the wire contract: the last number for texts, the middle one for additions, the first one for a v2 of the subjects."""

_HEADER = "# Generated from dynamo_shared.bus by `python -m dynamo_shared.bus.generate`. Do not edit.\n"


class _PlainDumper(yaml.SafeDumper):
    """Writes a value out wherever it stands, instead of anchors that few readers of AsyncAPI expect."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of PyYAML's interface
        return True


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file below the root of a checkout, with what should be in it."""
    proto = root / "proto"
    document = yaml.dump(asyncapi.document(VERSION), Dumper=_PlainDumper, sort_keys=False, width=120)
    texts = {proto / "asyncapi.yaml": _HEADER + document}
    texts |= {proto / "schemas" / f"{name}.json": _json(schema) for name, schema in schemas.schemas().items()}
    texts |= {
        proto / "golden" / f"{name}.json": _json(msgspec.to_builtins(message))
        for name, message in samples.golden().items()
    }
    return texts


def left_over(root: Path) -> list[Path]:
    """Files among the generated ones that nothing generates any more."""
    wanted = outputs(root)
    found = [path for folder in ("schemas", "golden") for path in (root / "proto" / folder).glob("*.json")]
    return sorted(path for path in found if path not in wanted)


def main(arguments: list[str] | None = None) -> int:
    """Command line; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m dynamo_shared.bus.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a file differs")
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).resolve().parents[4], help="checkout (default: that of this file)"
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
    for path in (extra := left_over(options.root)):
        sys.stdout.write(f"{'left over' if options.check else 'removed'}: {path.relative_to(options.root)}\n")
        if not options.check:
            path.unlink()
    return 1 if options.check and (stale or extra) else 0


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
