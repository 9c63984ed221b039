"""Precedence of versions, as semver.org gives it."""

import itertools

import pytest
from dynamo_shared.api import semver

ASCENDING = [
    "0.9.9",
    "1.0.0-0",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.1.0",
    "1.10.0",
    "2.0.0-rc.1",
]


@pytest.mark.parametrize(("lower", "higher"), [*itertools.combinations(ASCENDING, 2)])
def test_order(lower: str, higher: str) -> None:
    assert semver.at_least(higher, lower)
    assert not semver.at_least(lower, higher)


def test_build_metadata_and_a_leading_v_do_not_count() -> None:
    assert semver.parse("v1.2.3+build.5") == semver.parse("1.2.3")


@pytest.mark.parametrize("text", [None, "", "1", "1.2", "latest", "1.2.x", "01.0.0", "1.0.0-", "1.0.0\n", "1" * 300])
def test_an_invalid_version_is_never_new_enough(text: str | None) -> None:
    assert semver.parse(text or "") is None
    assert not semver.at_least(text, "0.0.0")


def test_a_gate_must_name_a_version() -> None:
    with pytest.raises(ValueError, match="is not a semantic version"):
        semver.at_least("1.0.0", "one")
