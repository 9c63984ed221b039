"""Generated files: writes them, or compares them with their expected content."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Outputs = Callable[[Path], Mapping[Path, str]]
"""Every file of a generator below the root of a checkout, with its content."""


class Generator(NamedTuple):
    """One generator."""

    name: str
    outputs: Outputs
    folders: tuple[tuple[str, str], ...] = ()
    """(folder, pattern) of which it writes every file: other matching files are obsolete"""


class _PlainDumper(yaml.SafeDumper):
    """Writes repeated values in full: anchors would be valid, but few readers expect them."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of PyYAML's interface
        return True


def yaml_text(document: Any) -> str:
    """A document as YAML, its keys in the order of the document."""
    text: str = yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, width=120, allow_unicode=True)
    return text


def run(generators: Iterable[Generator], root: Path, *, check: bool) -> int:
    """Writes files that differ and prints their names; with `check`, only prints, and returns 1 if a file differs."""
    differences = sum(_run(each, root, check=check) for each in generators)
    return 1 if check and differences else 0


def _run(generator: Generator, root: Path, *, check: bool) -> int:
    desired = generator.outputs(root)
    stale = {
        path: text for path, text in desired.items() if not path.is_file() or path.read_text(encoding="utf-8") != text
    }
    left_over = sorted(
        path for folder, pattern in generator.folders for path in (root / folder).glob(pattern) if path not in desired
    )
    for path, text in stale.items():
        print(f"{'differs' if check else 'wrote'}: {path.relative_to(root).as_posix()}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in left_over:
        print(f"{'left over' if check else 'removed'}: {path.relative_to(root).as_posix()}")
        if not check:
            path.unlink()
    return len(stale) + len(left_over)
