"""docs/policy.md matches the registry and the kinds, and covers every line of the proposal."""

import re
from pathlib import Path

import pytest
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.deprecations import DEPRECATIONS, of

from tools.releases import NOTICE_RELEASES
from tools.releases.graduation import criteria
from tools.releases.history import releases

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "policy.md").read_text()
Rows = list[list[str]]


def rows(heading: str) -> Rows:
    """The rows of the first table below a heading."""
    below = TEXT.split(f"{heading}\n", 1)[1]
    table = re.search(r"((?:^\|.*\n)+)", below, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[1].splitlines()[2:]]


def versions() -> dict[tuple[str, str], str]:
    """Since when a version of a kind is deprecated; "" if it is not."""
    return {
        (definition.kind, version.resource.version): next(
            (each.since for each in of(definition.kind, version.resource.version) if not each.path), ""
        )
        for definition in DEFINITIONS
        for version in definition.versions
    }


def test_support_windows_match_the_kinds() -> None:
    reported = {}
    for version, status, kinds, _ in rows("### Support windows"):
        for kind in kinds.strip("| ").split(", ") if kinds.strip("| ") != "none yet" else ():
            since = re.match(r"deprecated since (v[\d.]+)", status.strip())
            reported[kind, version.strip("| ")] = since[1] if since else ""
    assert reported == versions()


def test_stored_kinds_match_the_page() -> None:
    stored = {definition.kind for definition in DEFINITIONS if definition.resource.version == "v1beta1"}
    (row,) = [row for row in rows("### Support windows") if "stored" in row[1] and "v1beta1" in row[0]]
    assert set(row[2].split(", ")) == stored


def test_the_reported_end_matches_the_registry() -> None:
    ends = {each.removed_in for each in DEPRECATIONS if not each.path}
    for row in rows("### Support windows"):
        if row[1].startswith("deprecated"):
            assert [f"until {end}" in row[3] for end in ends] == [True]


def test_the_promised_notice_is_enforced() -> None:
    assert NOTICE_RELEASES == 2
    assert "At least two releases contain the entry" in TEXT


@pytest.mark.parametrize(
    ("heading", "count"),
    [("### From v1alpha1 to v1beta1", 7), ("### From v1beta1 to v1", 5), ("### Steps of the proposal", 17)],
)
def test_every_line_of_the_proposal_has_its_state(heading: str, count: int) -> None:
    result = rows(heading)
    assert len(result) == count
    for line, stands, by in result:
        assert stands.startswith(("done", "not yet")), line
        assert by.strip("| "), line
        if stands.startswith("done") and by.strip("| ") != "as above" and "same test" not in by:
            assert "](" in by, f"{line}: what shows it?"


def test_v1_is_not_claimed_before_it_exists() -> None:
    assert all(version != "v1" for _, version in versions())
    assert ["v1", "to come", "none yet", "long term"] in [
        [cell.strip("| ") for cell in row] for row in rows("### Support windows")
    ]


def test_the_documented_state_matches_the_computed_one() -> None:
    result = criteria(ROOT)
    assert len(result) == 12
    for each in result:
        (state,) = [row[1] for row in rows(f"### {each.step}") if row[0] == each.text]
        assert state.startswith("done" if each.met else "not yet"), str(each)


def test_each_release_has_its_section_in_the_changelog() -> None:
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = {str(each["release"]) for each in releases(ROOT)}
    assert released <= set(sections)
    assert "Unreleased" in sections


def test_the_migration_guide_names_everything_deprecated() -> None:
    text = (ROOT / "docs" / "migrate.md").read_text()
    for each in DEPRECATIONS:
        named = [each.path.removeprefix("spec.").replace("services{}.", "")] if each.path else each.kinds
        assert [name for name in named if f"`{name}`" not in text] == []
