"""Versions of objects."""

from dynamo_shared.state.versions import resource_version


def test_resource_versions_compare_as_integers() -> None:
    assert resource_version("1000") > resource_version("999")
    assert resource_version(None) == resource_version("") == resource_version("abc") == 0
