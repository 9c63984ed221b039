"""Kubernetes quantities (`8Gi`, `500m`, `1e3`): exact parsing and comparison.

The grammar is that of apimachinery's resource.Quantity: a signed decimal number with a binary suffix (Ki..Ei), a decimal
suffix (n..E) or an exponent. Values are Decimals, so that `0.1` and `100m` are equal.
"""

import re
from decimal import ROUND_UP, Context, Decimal, Inexact
from functools import lru_cache

from dynamo_shared.api.field_errors import shown

#: Types of a written quantity. A constant, because `int | float | str` in a call creates the union each time.
WRITTEN = (int, float, str)
#: The fields of a container's resources that hold quantities.
SIDES = ("limits", "requests")
#: The pattern of a quantity in schemas of the API server.
PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

_SYNTAX = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]+))?", re.ASCII)
#: Powers of ten of the decimal suffixes.
_POWERS = {suffix: power for power, suffix in zip(range(-9, 19, 3), ("n", "u", "m", "", *"kMGTPE"), strict=True)}
_SUFFIXES = {power: suffix for suffix, power in _POWERS.items()}
_FACTORS = {
    **{suffix: Decimal(10) ** power for suffix, power in _POWERS.items()},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}
_MAX_EXPONENT = 100
#: Kubernetes reduces larger amounts in binary units to this one, and no others.
_MAX_BINARY = Decimal(2**63 - 1)
# Enough digits for the longest quantity with the largest exponent; rounding is an error.
_EXACT = Context(prec=200, traps=[Inexact])
#: The smallest fractions of a quantity and of a resource; Kubernetes rounds up to them.
_NANO, _MILLI = Decimal("1e-9"), Decimal("1e-3")
_ROUNDING = Context(prec=200, rounding=ROUND_UP)


# More than any meaningful quantity has; limits the time of parsing. Characters.
_MAX_LENGTH = 64


class InvalidQuantity(ValueError):
    """A text is not a quantity."""

    def __init__(self, value: object) -> None:
        super().__init__(f"{shown(value)} is not a quantity; examples: 8Gi, 500m, 2, 1e9")


def parse(value: object) -> Decimal:
    """The amount in the base unit (bytes, cores, pieces) of a string or a number. Raises InvalidQuantity."""
    amount = amount_of(value)
    if amount is None:
        raise InvalidQuantity(value)
    return amount


@lru_cache(maxsize=1024)
def _amount(text: str) -> Decimal | None:
    """The amount of a string; None if it is not a quantity. Cached, because components of graphs repeat quantities."""
    match = _SYNTAX.fullmatch(text)
    if match is None:
        return None
    number, suffix, exponent = match.groups()
    if exponent is None:
        amount = _EXACT.multiply(Decimal(number), _FACTORS[suffix or ""])
        return max(-_MAX_BINARY, min(amount, _MAX_BINARY)) if suffix and suffix.endswith("i") else amount
    return Decimal(number).scaleb(int(exponent), _EXACT) if abs(int(exponent)) <= _MAX_EXPONENT else None


def amount_of(value: object) -> Decimal | None:
    """The amount of any value; None if it is not a quantity."""
    if isinstance(value, bool) or not isinstance(value, WRITTEN):
        return None
    text = str(value)
    return _amount(text) if len(text) <= _MAX_LENGTH else None


def equal(left: int | float | str, right: int | float | str) -> bool:
    """Whether Kubernetes stores the same amount of a resource for both (`1Gi` and `1024Mi`). Raises InvalidQuantity."""
    return _stored(left) == _stored(right)


def _stored(value: int | float | str) -> Decimal:
    return parse(value).quantize(_MILLI, context=_ROUNDING)


def is_zero(value: int | float | str) -> bool:
    """Whether a quantity is 0 (`0`, `0Gi`). Raises InvalidQuantity."""
    return parse(value) == 0


def canonical(value: int | float | str) -> str:
    """The quantity in the format of resource.Quantity after parsing: `0.5` as 500m, `1024Mi` as 1Gi. Raises InvalidQuantity."""
    # Without the spaces, of which there may be a million.
    return _canonical(str(value).strip(" "))


@lru_cache(maxsize=1024)
def _canonical(text: str) -> str:
    amount, match = parse(text), _SYNTAX.fullmatch(text)
    if not amount or match is None:
        return "0"
    number, suffix, exponent = match.groups()
    whole, _, fraction = number.lstrip("+-").partition(".")
    digits = (whole.lstrip("0") or "0") + fraction
    is_binary = exponent is None and (suffix or "").endswith("i")
    power = 0 if is_binary else int(exponent or _POWERS[suffix or ""]) - len(fraction)
    # resource.Quantity does not change some short forms, such as 1.500 and 1e3.
    if is_binary and not fraction and int(digits) % 8 and abs(amount) < _MAX_BINARY:
        return text
    if (
        not is_binary
        and power >= _NANO.adjusted()
        and not power % 3
        and not digits.endswith("000")
        and digits[0] != "0"
    ):
        return text
    if is_binary and abs(amount) >= 1024 and amount == amount.to_integral_value():
        return _in_binary(int(amount))
    return _in_decimal(amount, as_exponent=exponent is not None) or text


def _in_binary(amount: int) -> str:
    for suffix in ("", *(f"{letter}i" for letter in "KMGTP")):
        if amount % 1024:
            return f"{amount}{suffix}"
        amount //= 1024
    return f"{amount}Ei"


def _in_decimal(amount: Decimal, *, as_exponent: bool) -> str | None:
    """Digits and a suffix (or exponent) of a power of 1,000; None if there is no such suffix."""
    rounded = amount.quantize(_NANO, context=_ROUNDING).normalize(_EXACT)
    sign, digits, _ = rounded.as_tuple()
    power = rounded.adjusted() - len(digits) + 1
    text = "".join(map(str, digits)) + "0" * (power % 3)
    power -= power % 3
    suffix = _SUFFIXES.get(power) if not as_exponent else f"e{power}" if power else ""
    return None if suffix is None else f"{'-' * sign}{text}{suffix}"
