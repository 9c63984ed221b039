"""Checks of scalar values, one for each type and format that Kubernetes publishes."""

import base64
import binascii
import math
import re
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.embedded.findings import Check, FindingsLimit, Problems
from dynamo_shared.api.field_errors import shown, suggestion_for

_BITS = {"int32": 31, "int64": 63}
#: Limit of the values in a message; errors in longer enums (signals have 65 values) have only a suggestion.
_LISTED_VALUES = 12
_QUANTITIES = "8Gi, 500m, 2, 1e9"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


def anything(_value: Any, _budget: FindingsLimit) -> Problems:
    """No check, for unknown types: the API server checks them."""
    return None


def string(value: Any, budget: FindingsLimit) -> Problems:
    """A string."""
    return None if isinstance(value, str) else budget.problem(f"must be a string, not {shown(value)}")


def boolean(value: Any, budget: FindingsLimit) -> Problems:
    """A boolean, not a string such as "yes"."""
    return None if isinstance(value, bool) else budget.problem(f"must be true or false, not {shown(value)}")


def number(value: Any, budget: FindingsLimit) -> Problems:
    """A finite number."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return None
    return budget.problem(f"must be a number, not {shown(value)}")


def integer(size: str) -> Check:
    """An integer of a format (`int32`, `int64`). `2.0` is valid, because the API server reads it from YAML as 2."""
    least, most = (-(2 ** _BITS[size]), 2 ** _BITS[size] - 1) if size in _BITS else (-math.inf, math.inf)

    def check(value: Any, budget: FindingsLimit) -> Problems:
        if type(value) is not int and not (isinstance(value, float) and value.is_integer()):
            return budget.problem(f"must be an integer, not {shown(value)}")
        if least <= value <= most:
            return None
        return budget.problem(f"{shown(value)} does not fit an integer of {_BITS[size] + 1} bits")

    return check


_int32 = integer("int32")


def int_or_string(value: Any, budget: FindingsLimit) -> Problems:
    """An integer or a string, such as a port or a percentage."""
    if isinstance(value, str):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return budget.problem(f"must be an integer or a string, not {shown(value)}")
    return _int32(value, budget)


def parsed(value: Any) -> Decimal:
    """The amount of a quantity, as a string or a number. Raises InvalidQuantity."""
    # The API server ignores blanks around a quantity.
    return quantity.parse(value.strip(" ") if isinstance(value, str) else value)


def amount(value: Any, budget: FindingsLimit) -> Problems:
    """A quantity."""
    try:
        parsed(value)
    except quantity.InvalidQuantity:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return budget.problem(f"{shown(value)} is not a quantity; examples: {_QUANTITIES}")
        return budget.problem(f"must be a quantity, not {shown(value)}; examples: {_QUANTITIES}")
    return None


def time(value: Any, budget: FindingsLimit) -> Problems:
    """A time in the format of RFC 3339."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        try:
            # Refuses 24:00 and the 30th of February.
            datetime.fromisoformat(value[:19])
        except ValueError:
            pass
        else:
            return None
    return budget.problem(f"{shown(value)} is not a valid time; write it like 2026-01-31T12:00:00Z")


def base64_bytes(value: Any, budget: FindingsLimit) -> Problems:
    """A base64 string."""
    if not isinstance(value, str):
        return string(value, budget)
    try:
        base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        return budget.problem(f"{shown(value)} is not base64")
    return None


def choice(allowed: Iterable[str]) -> Check:
    """One of several strings. An empty string is valid: the API server replaces it by the default."""
    words = list(allowed)
    known = frozenset(words) | {""}

    def check(value: Any, budget: FindingsLimit) -> Problems:
        if not isinstance(value, str):
            return string(value, budget)
        if value in known:
            return None
        offered = suggestion_for(value, words)
        if not offered or len(words) <= _LISTED_VALUES:
            offered = f"; one of {', '.join(word or repr(word) for word in words[:_LISTED_VALUES])}"
            offered += ", ..." if len(words) > _LISTED_VALUES else ""
        return budget.problem(f"{shown(value)} is not allowed{offered}")

    return check
