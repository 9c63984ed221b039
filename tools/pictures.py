"""The diagrams of the documents: Graphviz draws `docs/pictures/NAME.dot` to `NAME.svg`, `tools.curves` draws
`NAME.csv`.

`python -m tools.pictures` draws the changed ones and needs `dot`; `--check` needs no program: each diagram contains the
hash of its source.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from tools import curves

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"


def stamp(source: Path) -> str:
    """The last line of the diagram of a source."""
    return f"<!-- {source.name} {hashlib.sha256(source.read_bytes()).hexdigest()} -->\n"


def outdated(folder: Path = FOLDER) -> list[Path]:
    """The sources whose diagrams are missing or outdated."""
    results = []
    for source in sorted((*folder.glob("*.dot"), *folder.glob("*.csv"))):
        screenshot = source.with_suffix(".svg")
        if not screenshot.is_file() or not screenshot.read_text(encoding="utf-8").endswith(stamp(source)):
            results.append(source)
    return results


def draw(source: Path, program: str) -> None:
    """Write the diagram of a source. Raises CalledProcessError if Graphviz refuses it."""
    if source.suffix == ".csv":
        source.with_suffix(".svg").write_text(curves.draw(source) + stamp(source), encoding="utf-8")
        return
    drawn = subprocess.run([program, "-Tsvg", str(source)], check=True, capture_output=True, text=True, timeout=60)
    source.with_suffix(".svg").write_text(drawn.stdout + stamp(source), encoding="utf-8")


def main() -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Draws docs/pictures.")
    parser.add_argument("--check", action="store_true", help="only report diagrams that are outdated")
    check = parser.parse_args().check
    sources = outdated()
    if check or not sources:
        for source in sources:
            needs = ", which needs Graphviz" if source.suffix == ".dot" else ""
            print(f"docs/pictures/{source.name} changed: run `make pictures`{needs}", file=sys.stderr)
        return 1 if sources else 0
    program = shutil.which("dot")
    if program is None and any(source.suffix == ".dot" for source in sources):
        print("`dot` is not on the PATH: install Graphviz (Debian: apt-get install graphviz)", file=sys.stderr)
        return 1
    for source in sources:
        draw(source, program or "")
        print(f"docs/pictures/{source.stem}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
