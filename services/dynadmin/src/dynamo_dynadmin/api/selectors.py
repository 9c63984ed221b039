"""Kubernetes label selectors: `a=b`, `a!=b`, `a in (b, c)`, `a notin (b)`, `a`, `!a`. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

Selector: TypeAlias = Callable[[Mapping[str, str]], bool]

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_EQUAL = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s+\(([^()]*)\)")
_EXISTS = re.compile(rf"(!?)\s*({_KEY})")
#: Requirements of one selector: each is checked for each object of a namespace, and for each change.
MOST_REQUIREMENTS = 32


class InvalidSelector(ValueError):
    """A selector that cannot be parsed."""


def selector(text: str) -> Selector:
    """A function that returns whether labels match. InvalidSelector."""
    if not text.strip():
        return lambda _: True
    requirements = [_requirement(part.strip()) for part in _parts(text)]
    return lambda labels: all(each(labels) for each in requirements)


def _parts(text: str) -> list[str]:
    """The requirements. Commas separate them, except within parentheses."""
    parts: list[str] = []
    is_listed = False
    for piece in text.split(","):
        if is_listed:
            parts[-1] += f",{piece}"
        elif len(parts) == MOST_REQUIREMENTS:
            raise InvalidSelector(
                f"a label selector has at most {MOST_REQUIREMENTS} requirements; name several values by `a in (b,c)`"
            )
        else:
            parts.append(piece)
        is_listed = (is_listed or "(" in piece) and ")" not in piece
    return parts


def _requirement(text: str) -> Selector:
    if match := _EQUAL.fullmatch(text):
        key, operator, value = match.groups()
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := _SET.fullmatch(text):
        key, operator, listed = match.groups()
        values = frozenset(each.strip() for each in listed.split(","))
        if any(re.fullmatch(_VALUE, each) is None for each in values):
            raise InvalidSelector(f"{text[:200]!r} is not a valid label selector")
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EXISTS.fullmatch(text):
        absent, key = match.groups()
        return (lambda labels: key not in labels) if absent else (lambda labels: key in labels)
    raise InvalidSelector(f"{text[:200]!r} is not a valid label selector; write a=b, a!=b, a in (b,c), a, or !a")
