"""Fails if two packages give one class name two meanings: a class must be identifiable by its name.

A name of the API exists once in each version. Documents for users (contracts, the REST API) name their parts in the
terms of their subject, so their names may also exist elsewhere: `PUBLISHED`.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("shared/src", "services", "tools", "compose")

VERSIONS = ("/v1alpha1/", "/v1beta1/")

PUBLISHED = {
    "Decision": "the REST API's; the planner's own is what that reports",
    "Hardware": "of a request by intent, and of the profiler's configuration",
    "Mode": "of an intent, and of the planner's configuration",
    "ModelCache": "of an intent, and of the profiler's configuration",
}


def duplicates(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Class names that occur in several sources (text by path), with the paths."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and node.name not in PUBLISHED:
                places[node.name].append(f"{path}:{node.lineno}")
    return {name: where for name, where in places.items() if len(where) > 1 and not _is_versioned(where)}


def _is_versioned(places: Iterable[str]) -> bool:
    folders = [[version for version in VERSIONS if version in place] for place in places]
    return all(folders) and len({version for each in folders for version in each}) == len(folders)


def main() -> int:
    """Print the duplicates; returns 1 if there are any."""
    files = (file for folder in SOURCES for file in sorted((ROOT / folder).rglob("*.py")))
    sources = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
    for name, places in sorted((where := duplicates(sources)).items()):
        print(f"{name} names several classes; rename all but one: {', '.join(places)}")
    return 1 if where else 0


if __name__ == "__main__":
    sys.exit(main())
