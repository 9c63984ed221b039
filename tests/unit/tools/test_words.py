"""The checker of words: names, comments and text, but not the terms of the field."""

from pathlib import Path

import pytest

from tools import words


def report(source: str) -> list[tuple[int, str]]:
    return [(line, word) for line, word, _instead in words.findings_of_python(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("wanted_replicas = 1", [(1, "wanted")]),
        ("class WishList: ...", [(1, "Wish")]),
        ("LOOK_EVERY = 5", [(1, "LOOK")]),
        ("pass  # made anew by nobody", [(1, "anew"), (1, "nobody")]),
        ('"""First.\n\nIt runs for ever.\n"""', [(3, "for ever")]),
        ('raise ValueError(f"{name} is no quantity")', [(1, "is no")]),
    ],
)
def test_a_replaced_word_is_reported_with_its_place(source: str, expected: list[tuple[int, str]]) -> None:
    assert report(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "value is None",
        "raise NotFoundError('no pod was not found')",
        "@pytest.mark.parametrize('x', [])\ndef test(): ...",
        "pass  # there is no pod; it is no longer there; of course it was looked up in flight",
        "bookmark = make(forever)",
    ],
)
def test_terms_of_the_field_and_other_words_are_allowed(source: str) -> None:
    assert report(source) == []


def test_a_module_named_by_a_gerund_is_reported(tmp_path: Path) -> None:
    (tmp_path / "deciding.py").write_text("x = 1\n")
    assert [str(each) for each in words.findings_of(tmp_path / "deciding.py")] == [
        f"{tmp_path}/deciding.py:1: 'deciding': write decision"
    ]


def test_texts_of_other_kinds_are_checked_too(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("# It is told.\nwantedReplicas: 1\n")
    (tmp_path / "page.md").write_text("Say\n`anew`.\n```\nbeside\n```\nIt runs for ever.\n")
    assert [str(each).removeprefix(f"{tmp_path}/") for each in words.findings_of(tmp_path / "values.yaml")] == [
        "values.yaml:1: 'told': write report, say, distinguish",
        "values.yaml:2: 'wanted': write desired",
    ]
    assert [(each.line, each.word) for each in words.findings_of(tmp_path / "page.md")] == [(6, "for ever")]


def test_every_folder_of_the_project_is_checked() -> None:
    checked = {path.relative_to(words.ROOT).parts[0] for path in words.files(words.ROOT)}
    assert {"Makefile", "compose.yaml", "docs", "helm", "proto", "services", "shared", "tests", "tools"} <= checked


def test_exempt_paths_exist() -> None:
    names = [path.relative_to(words.ROOT).as_posix() for path in words.ROOT.rglob("*") if ".venv" not in path.parts]
    assert [each for each in words.EXEMPT if not any(name.startswith(each.rstrip("/")) for name in names)] == []
