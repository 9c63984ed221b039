"""Parsing and precedence of semantic versions (semver.org 2.0.0), for features that depend on a version."""

import re
from typing import NamedTuple

_SYNTAX = re.compile(
    r"v?(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_MAX_LENGTH = 256


# Sort key of a dot-separated identifier of a pre-release: numbers compare as numbers, and come before words.
_Identifier = tuple[int, int, str]


class SemanticVersion(NamedTuple):
    """A version that compares by precedence: 1.0.0-alpha < 1.0.0-rc.1 < 1.0.0 < 1.0.1. It has no build metadata."""

    major: int
    minor: int
    patch: int
    released: bool = True
    prerelease: tuple[_Identifier, ...] = ()


def parse(text: str) -> SemanticVersion | None:
    """The version in a string such as `1.2.0` or `v1.2.0-rc.1`; None if it is not a version."""
    match = _SYNTAX.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    major, minor, patch, prerelease = match.groups()
    identifiers = tuple(_identifier(part) for part in prerelease.split(".")) if prerelease else ()
    return SemanticVersion(int(major), int(minor), int(patch), not identifiers, identifiers)


def _identifier(part: str) -> _Identifier:
    return (0, int(part), "") if part.isdigit() else (1, 0, part)


def at_least(text: str | None, minimum: str) -> bool:
    """Whether a version is `minimum` or later; False if it is None or not a version."""
    version, threshold = parse(text or ""), parse(minimum)
    if threshold is None:
        raise ValueError(f"{minimum!r} is not a semantic version")
    return version is not None and version >= threshold
