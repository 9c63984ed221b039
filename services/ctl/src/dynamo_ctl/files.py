"""Manifests from files, folders and standard input."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.untrusted.yaml_text import documents

from dynamo_ctl.errors import CtlError

S = TypeVar("S")
T = TypeVar("T")
STDIN = "-"
#: A larger file is not a manifest: etcd stores objects of at most 1.5 MiB.
MAX_BYTES = 16 << 20
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def title(file: Path) -> str:
    """The name of a file in messages."""
    return "standard input" if str(file) == STDIN else str(file)


def read(file: Path) -> str:
    """The text of a file, or of standard input for `-`. Raises CtlError if it cannot be read or is far too long."""
    try:
        if str(file) == STDIN:
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise CtlError(
                f"{title(file)}: has more than {MAX_BYTES >> 20} MiB, which is too large for a manifest; check the file's name"
            )
        return content.decode("utf-8")
    except OSError as error:
        raise CtlError(f"{title(file)}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CtlError(f"{title(file)}: is not UTF-8 text (byte {error.start})") from error


def document(file: Path, expected: str, otherwise: str = "") -> dict[str, Any]:
    """The only object of a file. Raises CtlError; `expected` names it, `otherwise` says what accepts manifests."""
    try:
        parsed = documents(read(file))
    except InvalidManifest as error:
        raise CtlError("\n".join(f"{title(file)}: {each}" for each in error.errors)) from error
    if len(parsed) != 1 or not isinstance(parsed[0], dict):
        raise CtlError(f"{title(file)}: must have exactly one object: {expected}")
    obj: dict[str, Any] = parsed[0]
    if "apiVersion" in obj and "kind" in obj:
        raise CtlError(f"{title(file)}: is a manifest of kind {obj['kind']}, not {expected}{otherwise}")
    return obj


class NotUsable(ValueError):
    """A text is invalid. `reasons` has one line for each mistake."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons


def each(paths: Iterable[Path], work: Callable[[str], T]) -> list[tuple[str, T]]:
    """Apply `work` to each file's text. Returns results with titles. Raises CtlError with the reasons of every
    NotUsable.
    """
    return of_each(((title(file), read(file)) for file in expand(paths)), work)


def of_each(titled: Iterable[tuple[str, S]], work: Callable[[S], T]) -> list[tuple[str, T]]:
    """Apply `work` to the content of each file. Returns results with the file's title. Raises CtlError like `each`."""
    results: list[tuple[str, T]] = []
    reasons: list[str] = []
    for source, content in titled:
        try:
            results.append((source, work(content)))
        except NotUsable as error:
            reasons += [f"{source}: {reason}" for reason in error.reasons]
    if reasons:
        raise CtlError("\n".join(reasons))
    return results


def expand(paths: Iterable[Path]) -> list[Path]:
    """The files; a folder becomes its YAML and JSON files, sorted by name. Raises CtlError for a folder without any."""
    expanded: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES)
            if not inside:
                raise CtlError(f"{path}: has no .yaml, .yml or .json file")
            expanded += inside
        else:
            expanded.append(path)
    return expanded
