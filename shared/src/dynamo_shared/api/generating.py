"""The command line that all generators share: write what the code says, or with `--check` report what differs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

Outputs = Callable[[Path], Mapping[Path, str]]
"""Every generated file below the root of a checkout, with what should be in it."""

_HERE = Path(__file__).resolve().parents[4]


class _PlainDumper(yaml.SafeDumper):
    """Writes a value out wherever it stands: anchors would be right, and few readers expect them."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of PyYAML's interface
        return True


def yaml_text(document: Any) -> str:
    """A document as YAML, its keys in the order of the document."""
    text: str = yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, width=120, allow_unicode=True)
    return text


def run(
    program: str,
    description: str,
    outputs: Outputs,
    arguments: list[str] | None = None,
    *,
    folders: Iterable[tuple[str, str]] = (),
) -> int:
    """Exit code of a generator. `folders` are (folder, pattern) of which it makes every file: others are left over."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a file differs")
    parser.add_argument("--root", type=Path, default=_HERE, help="checkout (default: the one of this file)")
    options = parser.parse_args(arguments)
    root: Path = options.root
    if not (root / "shared" / "pyproject.toml").is_file():
        parser.error(f"{root} is not a checkout of the platform; name it with --root")
    desired = outputs(root)
    stale = {
        path: text for path, text in desired.items() if not path.is_file() or path.read_text(encoding="utf-8") != text
    }
    left_over = sorted(
        path for folder, pattern in folders for path in (root / folder).glob(pattern) if path not in desired
    )
    for path, text in stale.items():
        _say("differs" if options.check else "wrote", path.relative_to(root))
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in left_over:
        _say("left over" if options.check else "removed", path.relative_to(root))
        if not options.check:
            path.unlink()
    return 1 if options.check and (stale or left_over) else 0


def _say(what: str, path: Path) -> None:
    sys.stdout.write(f"{what}: {path.as_posix()}\n")
