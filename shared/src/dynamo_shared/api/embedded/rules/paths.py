"""Paths below a volume or a folder."""

from typing import Any

from dynamo_shared.api.field_errors import shown


def not_below(path: Any) -> str:
    """Why a path does not stay below a volume; empty if it does, or if it is not a string."""
    if isinstance(path, str) and path.startswith("/"):
        return f"{shown(path)} must be a relative path: it begins at the root of the volume"
    return f"{shown(path)} must not contain '..'" if goes_up(path) else ""


def goes_up(path: Any) -> bool:
    """Whether a path contains the step `..`."""
    return isinstance(path, str) and ".." in path.split("/")
