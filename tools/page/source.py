"""The sources of the page, and whether the built files match them. Needs no Node."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "services/dynadmin/page"
BUILT = ROOT / "services/dynadmin/src/dynamo_dynadmin/page"
OPENAPI = ROOT / "proto/dynadmin.openapi.json"
FILES = ("index.html", "page.js", "page.css", "icon.svg")
_DIGEST = "sources.sha256"


def digest() -> str:
    """SHA-256 of all inputs of the built files."""
    total = hashlib.sha256()
    files = [each for each in sorted(SOURCES.rglob("*")) if each.is_file() and "tests" not in each.parts]
    for each in [*files, ROOT / "requirements/page.txt"]:
        total.update(str(each.relative_to(ROOT)).encode() + b"\0" + each.read_bytes() + b"\0")
    return total.hexdigest()


def record(folder: Path) -> None:
    """Record the hash of the sources in a folder of built files."""
    (folder / _DIGEST).write_text(digest() + "\n")


def problems() -> list[str]:
    """Errors of the committed files of the page; empty if they match the sources."""
    results = [f"{BUILT / name} is missing" for name in FILES if not (BUILT / name).is_file()]
    noted = BUILT / _DIGEST
    if not noted.is_file() or noted.read_text().strip() != digest():
        results.append(f"{BUILT} was built from other sources")
    return results
