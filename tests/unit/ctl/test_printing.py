from __future__ import annotations

from datetime import UTC, datetime

import pytest
import yaml
from dynamo_ctl.printing import age, columns, span
from dynamo_shared.api.yaml_output import to_yaml
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0.9, "0s"), (120, "120s"), (121, "2m"), (10_799, "179m"), (10_800, "3h"), (172_800, "2d")],
)
def test_spans_are_written_in_the_largest_whole_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_age_counts_from_a_moment() -> None:
    assert age("2026-01-01T00:00:00Z", datetime(2026, 1, 1, 0, 0, 42, tzinfo=UTC)) == "42s"
    assert age("") == "-"


def test_columns_line_up_without_trailing_blanks() -> None:
    assert columns(["NAME", "AGE"], [["long-name", "1s"], ["b", ""]]) == ["NAME        AGE", "long-name   1s", "b"]


@pytest.mark.parametrize(
    "text", ["y", "N", "12e5", "12345e67", "0o17", "0x1F", "1_000", ".5", "8000", "true", "~", "1.2.0"]
)
def test_what_kubectl_could_take_for_something_else_is_quoted(text: str) -> None:
    line = to_yaml({"value": text})
    assert line.startswith("value: '")
    assert yaml.safe_load(line) == {"value": text}


@pytest.mark.parametrize("text", ["8Gi", "python3", "nvcr.io/nvidia/image:1.2.1", "25%"])
def test_plain_words_stay_plain(text: str) -> None:
    assert to_yaml({"value": text}) == f"value: {text}\n"


@given(st.text(), st.text())
def test_texts_survive(one: str, two: str) -> None:
    assert yaml.safe_load(to_yaml({"a": one, "b": [two, two]})) == {"a": one, "b": [two, two]}


def test_the_same_list_twice_is_written_twice() -> None:
    verbs = ["get", "list"]
    assert "&" not in to_yaml({"a": verbs, "b": verbs})
