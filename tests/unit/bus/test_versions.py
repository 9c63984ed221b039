"""Which version of an object replaces which."""

from __future__ import annotations

import pytest
from dynamo_shared.bus.versions import Version, is_newer, resource_version

EARLY, SAME, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T01:00:00Z"


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (Version("a", 10, EARLY), Version("a", 9, EARLY), True),
        (Version("a", 9, EARLY), Version("a", 10, EARLY), False),
        (Version("a", 10, EARLY), Version("a", 10, EARLY), False),
        # A cluster that was set up anew counts from the beginning.
        (Version("b", 5, LATE), Version("a", 900, EARLY), True),
        (Version("a", 900, EARLY), Version("b", 5, LATE), False),
        # Deleted and made again within the resolution of the clock.
        (Version("b", 11, SAME), Version("a", 10, EARLY), True),
        (Version("a", 10, EARLY), Version("b", 11, SAME), False),
        (Version("b", 11, ""), Version("a", 10, EARLY), True),
    ],
)
def test_is_newer(new: Version, old: Version, expected: bool) -> None:
    assert is_newer(new, old) is expected


def test_resource_versions_compare_as_integers() -> None:
    assert resource_version("1000") > resource_version("999")
    assert resource_version(None) == resource_version("") == resource_version("abc") == 0
