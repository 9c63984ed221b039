"""Kubernetes quantities (`8Gi`, `500m`, `1e3`): parsing and comparing, exactly.

The grammar is the one of apimachinery's resource.Quantity: a signed decimal number with a binary suffix (Ki..Ei), a
decimal one (n..E) or an exponent. Values are Decimals, so that `0.1` and `100m` are the same amount.
"""

import re
from decimal import Context, Decimal, Inexact
from functools import lru_cache

#: What the API server's schema demands of a quantity that is written as a string.
PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

_SYNTAX = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]+))?", re.ASCII)
_FACTORS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}
_MAX_EXPONENT = 64
# Enough digits for the longest quantity times Ei; a result that would be rounded is an error, never a wrong amount.
_EXACT = Context(prec=160, traps=[Inexact])


# Longer than any amount that means something, short enough that one cannot be used to burn time.
_MAX_LENGTH = 64


class InvalidQuantity(ValueError):
    """A text is not a quantity."""

    def __init__(self, value: object) -> None:
        # Never repeated whole: a tenant's text can be as long as an object.
        said = repr(value) if not isinstance(value, str) or len(value) <= _MAX_LENGTH else f"{value[:_MAX_LENGTH]!r}..."
        super().__init__(f"{said} is not a quantity; examples: 8Gi, 500m, 2, 1e9")


def parse(value: object) -> Decimal:
    """Amount in the base unit (bytes, cores, pieces). InvalidQuantity for anything that Kubernetes would not read.

    A YAML number is taken as it is written: `0`, `1.5`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidQuantity(value)
    text = str(value)
    if len(text) > _MAX_LENGTH:
        raise InvalidQuantity(value)
    amount = _amount(text)
    if amount is None:
        raise InvalidQuantity(value)
    return amount


@lru_cache(maxsize=1024)
def _amount(text: str) -> Decimal | None:
    """Amount of a text; None where it is not a quantity. A graph's components say the same few again and again."""
    match = _SYNTAX.fullmatch(text)
    if match is None:
        return None
    number, suffix, exponent = match.groups()
    if exponent is None:
        return _EXACT.multiply(Decimal(number), _FACTORS[suffix or ""])
    return Decimal(number).scaleb(int(exponent), _EXACT) if abs(int(exponent)) <= _MAX_EXPONENT else None


def amount_of(value: object) -> Decimal | None:
    """Amount of any value; None where it is not a quantity."""
    try:
        return parse(value)
    except InvalidQuantity:
        return None


def equal(left: int | float | str, right: int | float | str) -> bool:
    """Whether two quantities are the same amount, however they are written (`1Gi` and `1024Mi`)."""
    return parse(left) == parse(right)


def is_zero(value: int | float | str) -> bool:
    """Whether a quantity is exactly nothing (`0`, `0Gi`)."""
    return parse(value) == 0
