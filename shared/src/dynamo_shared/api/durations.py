"""Durations in Go's format: `30s`, `15m`, `1h30m`."""

import re

#: Longer than any meaningful duration. Characters.
_LONGEST = 64
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
PATTERN = rf"^({_PART.pattern})+$"


def seconds(value: object) -> object:
    """A Go duration such as `1m30s` in seconds; other values than strings are unchanged. Raises ValueError."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if len(text) > _LONGEST or not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        raise ValueError("write a duration such as 30s, 15m or 1h30m")
    return sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))
