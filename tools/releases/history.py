"""The past releases: one file each, next to this module, written with the release and never changed afterwards."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynamo_shared.api.semver import SemanticVersion, parse

from tools.releases.snapshot import Snapshot

FOLDER = Path("tools") / "releases"
#: Below these keys, each field or name is on one line, so a change shows as one line.
_FLAT = frozenset({"fields", "settings", "deprecations"})


def releases(root: Path) -> list[Snapshot]:
    """Snapshots of all releases, oldest first. ValueError if a file's release does not match its name."""
    release_files = [(_version(file.stem), file) for file in (root / FOLDER).glob("*.json")]
    snapshots = [json.loads(file.read_text(encoding="utf-8")) for _, file in sorted(release_files)]
    for (_, file), snapshot in zip(sorted(release_files), snapshots, strict=True):
        if snapshot["release"] != file.stem:
            raise ValueError(f"{file.name} is of release {snapshot['release']}")
    return snapshots


def version_of(root: Path) -> str:
    """Version of a checkout."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def file_of(root: Path, release: str) -> Path:
    """File of a release."""
    return root / FOLDER / f"{release}.json"


def text(snapshot: Snapshot) -> str:
    """The content of a snapshot's file."""
    return _text(snapshot, 0, flat=False) + "\n"


def _text(value: Any, depth: int, *, flat: bool) -> str:
    if not isinstance(value, Mapping | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    indent, end = "  " * (depth + 1), "  " * depth
    if isinstance(value, list):
        if not flat:
            return json.dumps(value, ensure_ascii=False)
        return "[\n" + ",\n".join(f"{indent}{json.dumps(each, ensure_ascii=False)}" for each in value) + f"\n{end}]"
    lines = [
        f"{indent}{json.dumps(key)}: "
        + (json.dumps(each, ensure_ascii=False) if flat else _text(each, depth + 1, flat=key in _FLAT))
        for key, each in value.items()
    ]
    return "{\n" + ",\n".join(lines) + f"\n{end}}}"


def _version(name: str) -> SemanticVersion:
    version = parse(name)
    if version is None:
        raise ValueError(f"no release names {name}.json")
    return version
