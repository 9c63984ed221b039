"""JSON that is nested deeper than a decoder can parse."""

import json
from typing import Any

import msgspec
import pytest
from dynamo_shared.kube import watch_wire
from dynamo_shared.kube.depth import MOST_LEVELS, bounded, cut
from dynamo_shared.state import messages
from hypothesis import given
from hypothesis import strategies as st

#: Deeper than any Python parses: 3.11 stops at 1,000 levels, 3.13 at some 10,000.
LEVELS = 100_000
DEEP = (
    b'{"metadata": {"name": "a", "uid": "u"}, "spec": {"data": ' + b"[" * LEVELS + b"]" * LEVELS + b', "b": "]}\\""}}'
)
VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def shallow(value: Any, most: int) -> Any:
    if not isinstance(value, list | dict):
        return value
    if most == 0:
        return None
    if isinstance(value, list):
        return [shallow(each, most - 1) for each in value]
    return {name: shallow(each, most - 1) for name, each in value.items()}


@given(value=VALUES, most=st.integers(0, 4))
def test_a_too_deep_value_becomes_null_and_the_rest_stays(value: Any, most: int) -> None:
    assert json.loads(cut(json.dumps(value).encode(), most)) == shallow(value, most)


def test_a_too_deep_object_is_read_without_that_value() -> None:
    for content in (DEEP, memoryview(DEEP), msgspec.Raw(DEEP)):
        result = watch_wire.decode_object(content)
        assert (result["metadata"]["name"], result["spec"]["b"]) == ("a", ']}"')
    event = watch_wire.decode_event(b'{"type": "ADDED", "object": ' + DEEP + b"}")
    assert json.dumps(event.object).count("[") < MOST_LEVELS
    page = watch_wire.decode_page(
        b'{"metadata": {"resourceVersion": "1"}, "items": [' + DEEP + b', {"metadata": {"name": "b"}}]}'
    )
    assert [watch_wire.item_meta(each).name for each in page.items or ()] == ["a", "b"]


def test_invalid_json_still_raises() -> None:
    for content in (b"{", b"[" * LEVELS):
        with pytest.raises(msgspec.DecodeError):
            bounded(msgspec.json.decode)(content)
    with pytest.raises(msgspec.DecodeError):
        messages.decode_object(DEEP)
