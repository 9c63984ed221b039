"""Paths below a volume or a folder."""

from typing import Any

from dynamo_shared.api.field_errors import shown


def not_below(path: Any) -> str:
    """What is wrong with a path that is to be below a volume; empty where nothing is, or where it is not a text."""
    if isinstance(path, str) and path.startswith("/"):
        return f"{shown(path)} must be a relative path: it begins at the root of the volume"
    return f"{shown(path)} must not contain '..'" if goes_up(path) else ""


def goes_up(path: Any) -> bool:
    """Whether a path leaves the folder that it begins in."""
    return isinstance(path, str) and ".." in path.split("/")
