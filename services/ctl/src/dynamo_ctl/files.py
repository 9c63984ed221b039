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
#: More is not a manifest: etcd stores objects of at most 1.5 MiB.
MAX_BYTES = 16 << 20
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def title(file: Path) -> str:
    """What messages call a file."""
    return "standard input" if str(file) == STDIN else str(file)


def read(file: Path) -> str:
    """Text of a file, `-` for standard input. CtlError where it cannot be read or is far too long."""
    try:
        if str(file) == STDIN:
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise CtlError(
                f"{title(file)}: has more than {MAX_BYTES >> 20} MiB, which no manifest has; check the file's name"
            )
        return content.decode("utf-8")
    except OSError as error:
        raise CtlError(f"{title(file)}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CtlError(f"{title(file)}: is not UTF-8 text (byte {error.start})") from error


def document(file: Path, expected: str, otherwise: str = "") -> dict[str, Any]:
    """The one object that a file has. CtlError; `expected` says what it is, `otherwise` what manifests are for."""
    try:
        parsed = documents(read(file))
    except InvalidManifest as error:
        raise CtlError("\n".join(f"{title(file)}: {each}" for each in error.errors)) from error
    if len(parsed) != 1 or not isinstance(parsed[0], dict):
        raise CtlError(f"{title(file)}: one object is expected: {expected}")
    obj: dict[str, Any] = parsed[0]
    if "apiVersion" in obj and "kind" in obj:
        raise CtlError(
            f"{title(file)}: this is a manifest of kind {obj['kind']}, and {expected} is expected{otherwise}"
        )
    return obj


class NotUsable(ValueError):
    """What a text cannot become; `reasons` holds one line for each mistake."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons


def each(paths: Iterable[Path], work: Callable[[str], T]) -> list[tuple[str, T]]:
    """What `work` makes of each file's text, with the file's title. CtlError with every reason of each that is NotUsable."""
    return of_each(((title(file), read(file)) for file in expand(paths)), work)


def of_each(titled: Iterable[tuple[str, S]], work: Callable[[S], T]) -> list[tuple[str, T]]:
    """What `work` makes of what each file has, with the file's title. CtlError as `each`."""
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
    """The files, and of folders their YAML and JSON files in order of name. CtlError where a folder has none."""
    expanded: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES)
            if not inside:
                raise CtlError(f"{path}: holds no .yaml, .yml or .json file")
            expanded += inside
        else:
            expanded.append(path)
    return expanded
