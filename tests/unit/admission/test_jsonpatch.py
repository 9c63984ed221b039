"""Patches are minimal and correct."""

import copy
from typing import Any

import pytest
from dynamo_admission.jsonpatch import difference
from hypothesis import given
from hypothesis import strategies as st

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b/c", "d~", ""]), inner, max_size=3)
    ),
    max_leaves=12,
)


def applied(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Applies a patch: the part of RFC 6902 that is used."""
    document = copy.deepcopy(document)
    for operation in operations:
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]] or [
            None
        ]
        if last is None:
            document = operation["value"]
            continue
        at = document
        for part in path:
            at = at[int(part)] if isinstance(at, list) else at[part]
        key = int(last) if isinstance(at, list) else last
        if operation["op"] == "remove":
            del at[key]
        else:
            at[key] = operation["value"]
    return document


@given(VALUES, VALUES)
def test_a_patch_turns_the_old_object_into_the_new_one(old: Any, new: Any) -> None:
    assert repr_of(applied(old, difference(old, new))) == repr_of(new)


def repr_of(value: Any) -> Any:
    """True and 1 are equal in Python but not in JSON; the order of keys does not matter."""
    if isinstance(value, dict):
        return {key: repr_of(item) for key, item in value.items()}
    return [repr_of(item) for item in value] if isinstance(value, list) else (type(value), value)


@pytest.mark.parametrize(
    ("old", "new", "operations"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c/d": 2}}, [{"op": "add", "path": "/a/c~1d", "value": 2}]),
        ({"a": [{"n": 1}, {}]}, {"a": [{"n": 1}, {"r": 1}]}, [{"op": "add", "path": "/a/1/r", "value": 1}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
    ],
)
def test_a_patch_contains_only_the_difference(old: Any, new: Any, operations: list[dict[str, Any]]) -> None:
    assert difference(old, new) == operations
