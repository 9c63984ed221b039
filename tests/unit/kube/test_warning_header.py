"""Warnings of the API server, as headers and as texts."""

import pytest
from dynamo_shared.kube.warning_header import header_of, text_of
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ('299 - "spec.a: is old"', "spec.a: is old"),
        (r'299 kube "has a \"b\" and a \\"', 'has a "b" and a \\'),
        ("of another form", "of another form"),
    ],
)
def test_the_text_of_a_header(header: str, text: str) -> None:
    assert text_of(header) == text


@given(st.text(st.characters(exclude_characters="\n\r")))
def test_a_text_survives_the_round_trip(text: str) -> None:
    assert text_of(header_of(text)) == text
