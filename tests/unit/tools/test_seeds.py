"""docs/seeds.md: its rows name tests that exist, and nothing that the seeds name is left out."""

import re
from pathlib import Path

import pytest

from tools.seeds import PAGE, ROOT, Row, passing, problems, rows

SEEDS = ROOT.parent / "shared" / "seeds"
HERE = SEEDS.is_dir()
#: Values and commands in backticks that are not names.
PLAIN = re.compile(r'^(true|false|""|v1)$')


def test_every_row_has_a_state_and_tests_that_exist() -> None:
    page = rows(PAGE.read_text())
    assert len(page) > 150
    assert problems(page) == []


def test_errors_of_a_row_are_reported(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("def test_it(): ...\nclass TestGroup:\n  def test_one(self): ...\n")
    given = [
        Row("fine", "holds", "`tests/test_a.py::test_it` and `tests/test_a.py::TestGroup::test_one`"),
        Row("class left out", "holds", "`tests/test_a.py::test_one`"),
        Row("no test", "holds", "it does"),
        Row("gone", "holds", "`tests/test_a.py::test_other`"),
        Row("no file", "holds", "`tests/test_b.py::test_it`"),
        Row("no reason", "overruled", "no"),
        Row("state", "maybe", "`tests/test_a.py::test_it`"),
    ]
    assert problems(given, tmp_path) == [
        "class left out: there is no tests/test_a.py::test_one",
        "no test: names no test",
        "gone: there is no tests/test_a.py::test_other",
        "no file: there is no tests/test_b.py::test_it",
        "no reason: has no reason and no alternative",
        "state: 'maybe' is not one of holds, overruled, not yet",
    ]


def test_a_line_that_is_not_a_row_is_rejected() -> None:
    with pytest.raises(ValueError, match="this one has 2"):
        rows("| a | b |\n")


def test_a_test_passes_if_one_case_passed_and_none_failed() -> None:
    case = '<testcase classname="tests.unit.test_a" name="{}">{}</testcase>'
    cases = (("test_x[1]", ""), ("test_x[2]", "<skipped/>"), ("test_y", "<skipped/>"), ("test_z[1]", ""))
    text = "".join(case.format(*each) for each in (*cases, ("test_z[2]", "<failure/>"), ("test_e", "<error/>")))
    text += '<testcase classname="tests.unit.test_a.TestGroup" name="test_one"/>'
    assert passing(f"<testsuites><testsuite>{text}</testsuite></testsuites>") == {
        "tests/unit/test_a.py::test_x",
        "tests/unit/test_a.py::TestGroup::test_one",
    }


@pytest.mark.skipif(not HERE, reason="the seeds (../shared/seeds) are not here")
@pytest.mark.parametrize("seed", ["000", "001", "003"])
def test_every_name_of_a_seed_is_on_the_page(seed: str) -> None:
    (file,) = SEEDS.glob(f"{seed}_*.txt")
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    names = {name for name in re.findall(r"`([^`\n]+)`", text) if not PLAIN.match(name)}
    assert len(names) > 30
    page = PAGE.read_text()
    assert sorted(name for name in names if name not in page) == []


@pytest.mark.skipif(not HERE, reason="the seeds (../shared/seeds) are not here")
def test_every_type_of_the_api_reference_is_on_the_page() -> None:
    (file,) = SEEDS.glob("004_*.txt")
    types = set(re.findall(r"^([A-Z][a-z]+(?:[A-Z][A-Za-z0-9]*)+) ", file.read_text(), re.MULTILINE))
    assert len(types) > 40
    page = PAGE.read_text()
    assert sorted(name for name in types if name not in page) == []
