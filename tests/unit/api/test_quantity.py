"""Quantities: their syntax, their amounts, and that no digit is lost."""

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from dynamo_shared.api import quantity
from hypothesis import given
from hypothesis import strategies as st

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
LARGEST = 2**63 - 1
"""The largest amount in binary units."""
numbers = st.one_of(
    st.integers(-(10**18), 10**18).map(str),
    st.decimals(-(10**9), 10**9, places=6, allow_nan=False).map("{:f}".format),
    st.integers(0, 10**6).map(lambda number: f".{number}"),
    st.integers(0, 10**6).map(lambda number: f"+{number}."),
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("8Gi", 8 * 2**30),
        ("1Ei", 2**60),
        ("1E", 10**18),
        ("1E3", 1000),
        ("1e-3", Decimal("0.001")),
        ("500m", Decimal("0.5")),
        ("100u", Decimal("0.0001")),
        ("1n", Decimal("1e-9")),
        (".5Gi", 2**29),
        ("+2.k", 2000),
        ("-1", -1),
        ("1e100", 10**100),
        ("8Ei", 2**63 - 1),
        ("-9Ei", 1 - 2**63),
        (0, 0),
        (3, 3),
        (1.5, Decimal("1.5")),
        ("0", 0),
    ],
)
def test_amount(text: str | int | float, amount: int | Decimal) -> None:
    assert quantity.parse(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 Gi",
        "1GB",
        "Gi",
        "1gi",
        "1K",
        "1mi",
        "0x10",
        "1_000",
        "1e",
        "1e2.5",
        "--1",
        "1,5",
        "٣",
        "1e101",
        "9" * 65,
    ],
)
def test_invalid_quantities(text: str) -> None:
    with pytest.raises(quantity.InvalidQuantity, match="is not a quantity"):
        quantity.parse(text)


@pytest.mark.parametrize("value", [True, None, [], {}, float("inf"), float("nan")])
def test_values_that_are_neither_number_nor_text(value: object) -> None:
    with pytest.raises(quantity.InvalidQuantity):
        quantity.parse(value)


@given(numbers, st.sampled_from(SUFFIXES))
def test_every_quantity_matches_the_pattern_of_the_api_server(number: str, suffix: str) -> None:
    text = f"{number}{suffix}"
    assert re.fullmatch(quantity.PATTERN, text)
    factor = {"i": 1024}.get(suffix[1:], 1000)
    power = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}[suffix[:1]]
    amount = Fraction(Decimal(number)) * Fraction(factor) ** power
    if factor == 1024:
        amount = max(Fraction(-LARGEST), min(amount, Fraction(LARGEST)))
    assert Fraction(quantity.parse(text)) == amount


@given(st.text(max_size=70))
def test_any_text_is_a_quantity_or_rejected(text: str) -> None:
    try:
        quantity.parse(text)
    except quantity.InvalidQuantity:
        return
    assert re.fullmatch(quantity.PATTERN, text)


@given(st.integers(0, 2**70))
def test_large_amounts_keep_all_digits(number: int) -> None:
    assert quantity.parse(f"{number}E") == number * 10**18


def test_comparison_is_of_amounts() -> None:
    assert quantity.equal("1Gi", "1024Mi")
    assert quantity.equal("0.1", "100m")
    assert quantity.equal("0.5m", "1m")
    assert not quantity.equal("1.5", "1501m")
    assert not quantity.equal("1G", "1Gi")
    assert quantity.is_zero("0Gi")
    assert quantity.is_zero(0)
    assert not quantity.is_zero("1n")


#: What k8s.io/apimachinery 0.35.4 writes for a parsed amount.
@pytest.mark.parametrize(
    ("given_", "written"),
    [
        *[(1, "1"), (1.0, "1"), (0.5, "500m"), ("0.5", "500m"), (".5", "500m"), ("+0.5", "500m"), ("-0.5", "-500m")],
        *[("500m", "500m"), ("1000m", "1"), ("1500m", "1500m"), ("1.5", "1500m"), ("3000m", "3"), ("100000m", "100")],
        *[("1.500", "1.500"), ("20.000", "20"), ("5.", "5."), ("010", "010"), ("120", "120"), ("0.0001", "100u")],
        *[("1000", "1k"), ("100k", "100k"), ("1000k", "1M"), ("1048576", "1048576"), ("0.0000000001", "1n")],
        *[("1e3", "1e3"), ("1E3", "1E3"), ("1000e3", "1e6"), ("12e4", "120e3"), ("1e-3", "1e-3")],
        *[("1024Mi", "1Gi"), ("16384Mi", "16Gi"), ("1048576Ki", "1Gi"), ("2048Pi", "2Ei"), (" 8Gi ", "8Gi")],
        *[("1536Mi", "1536Mi"), ("1.5Gi", "1536Mi"), ("0.5Gi", "512Mi"), ("1.25Ki", "1280"), ("1025Ki", "1025Ki")],
        *[("0.1Gi", "107374182400m"), ("0.3Ki", "307200m"), ("0.001Mi", "1048576m")],
        *[(0, "0"), ("0Gi", "0"), ("0.0", "0"), ("1e100", "10e99"), ("1e-100", "1e-9"), ("9E", "9E"), ("10E", "10E")],
        *[("7Ei", "7Ei"), ("8192Pi", "9223372036854775807"), ("9Ei", "9223372036854775807")],
        *[("-9Ei", "-9223372036854775807"), ("9007199254740993Ki", "9223372036854775807")],
    ],
)
def test_an_amount_is_written_as_kubernetes_writes_it(given_: str | int | float, written: str) -> None:
    assert quantity.canonical(given_) == written


def test_spaces_are_not_remembered() -> None:
    quantity._canonical.cache_clear()
    assert [quantity.canonical(f"{' ' * spaces}1") for spaces in (0, 1, 1000)] == ["1", "1", "1"]
    assert quantity._canonical.cache_info().currsize == 1


@given(st.builds("{}{}".format, numbers, st.sampled_from(SUFFIXES)))
def test_writing_changes_no_amount_except_by_rounding_up_below_nano(text: str) -> None:
    amount, written = quantity.parse(text), quantity.canonical(text)
    assert 0 <= abs(quantity.parse(written)) - abs(amount) < Decimal("1e-9")
    assert quantity.canonical(written) == written
