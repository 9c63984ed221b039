"""`make seeds`: runs the tests that the rows of docs/seeds.md name; the last line counts the rows that hold.

A row is one line of a table: the requirement of a seed, its state, and the tests that show it or the reason why not.
"""

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "seeds.md"
HOLDS, OVERRULED, NOT_YET = "holds", "overruled", "not yet"
STATES = (HOLDS, OVERRULED, NOT_YET)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::((?:Test\w+::)?test_\w+)`")


@dataclass(frozen=True, slots=True)
class Test:
    """A test function, by its file below the checkout and its name, with that of its class: pytest's id."""

    file: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}::{self.name}"


@dataclass(frozen=True, slots=True)
class Row:
    """A requirement of a seed."""

    what: str
    state: str
    shown_by: str

    @property
    def tests(self) -> tuple[Test, ...]:
        """The tests that the row names."""
        return tuple(Test(*each) for each in _TEST.findall(self.shown_by))


def rows(text: str) -> list[Row]:
    """Rows of all tables of a page. ValueError for a line that does not have three cells."""
    results = []
    for line in text.splitlines():
        if not line.startswith("| ") or line.startswith("| what |"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if len(cells) != 3:
            raise ValueError(f"a row has three cells, this one has {len(cells)}: {line}")
        results.append(Row(*cells))
    return results


def problems(page: Iterable[Row], root: Path = ROOT) -> list[str]:
    """Errors in rows: unknown states, rows that hold without a test, tests that do not exist."""
    results = []
    known: dict[str, frozenset[str]] = {}
    for row in page:
        if row.state not in STATES:
            results.append(f"{row.what}: {row.state!r} is not one of {', '.join(STATES)}")
        if row.state == HOLDS and not row.tests:
            results.append(f"{row.what}: names no test")
        if row.state != HOLDS and len(row.shown_by) < 15:
            results.append(f"{row.what}: has no reason and no alternative")
        for test in row.tests:
            names = known.setdefault(test.file, _functions(root / test.file))
            if test.name not in names:
                results.append(f"{row.what}: there is no {test}")
    return results


def _functions(file: Path) -> frozenset[str]:
    """Test functions of a file; functions of a class with its name."""
    if not file.is_file():
        return frozenset()
    body = ast.parse(file.read_text(encoding="utf-8")).body
    within = [(f"{each.name}::", one) for each in body if isinstance(each, ast.ClassDef) for one in each.body]
    return frozenset(
        f"{prefix}{each.name}"
        for prefix, each in [("", each) for each in body] + within
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def run(page: list[Row]) -> int:
    """Run every test that a page names, in one pytest process. The exit code: 0 if all rows hold."""
    tests = sorted({str(test) for row in page for test in row.tests})
    with tempfile.TemporaryDirectory(prefix="seeds-") as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
        ]
        subprocess.run([*command, *tests], check=False, cwd=ROOT)
        passed = passing(report.read_text(encoding="utf-8")) if report.is_file() else frozenset()
    held = 0
    for row in page:
        missing = [str(test) for test in row.tests if str(test) not in passed]
        if row.state == HOLDS and not missing:
            held += 1
        elif row.state == NOT_YET:
            _say(f"not yet: {row.what}: {row.shown_by}")
        elif missing:
            _say(f"does not hold: {row.what}: {', '.join(missing)}")
    states = Counter(row.state for row in page)
    asked = states[HOLDS] + states[NOT_YET]
    _say(f"seeds {held}/{asked} hold, {states[OVERRULED]} overruled")
    return 0 if held == asked else 1


def passing(report: str) -> frozenset[str]:
    """Tests of which at least one case passed and none failed, according to pytest's JUnit report."""
    passed, failed = set(), set()
    for case in ElementTree.fromstring(report).iter("testcase"):  # noqa: S314 - written by pytest a moment ago
        *folders, last = str(case.get("classname", "")).split(".")
        if last.startswith("Test"):
            folders[-1] += f".py::{last}"
        else:
            folders.append(f"{last}.py")
        name = f"{'/'.join(folders)}::{str(case.get('name', '')).partition('[')[0]}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(name)
        elif case.find("skipped") is None:
            passed.add(name)
    return frozenset(passed - failed)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.seeds", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check the page, and run nothing")
    options = parser.parse_args(arguments)
    page = rows(PAGE.read_text(encoding="utf-8"))
    wrong = problems(page)
    for problem in wrong:
        _say(problem)
    if wrong:
        return 1
    return 0 if options.check else run(page)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
