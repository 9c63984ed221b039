"""The smallest JSON patch (RFC 6902) between two versions of an object with few differences."""

from collections.abc import Iterator
from typing import Any

Operation = dict[str, Any]


def difference(old: Any, new: Any) -> list[Operation]:
    """Operations that turn `old` into `new`. Parts that are the same Python object in both are skipped."""
    return list(_walk(old, new, ""))


def _walk(old: Any, new: Any, path: str) -> Iterator[Operation]:
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            if key not in new:
                yield {"op": "remove", "path": f"{path}/{_token(key)}"}
        for key, value in new.items():
            below = f"{path}/{_token(key)}"
            if key not in old:
                yield {"op": "add", "path": below, "value": value}
            else:
                yield from _walk(old[key], value, below)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _walk(before, after, f"{path}/{index}")
    elif type(old) is not type(new) or old != new:
        yield {"op": "replace", "path": path, "value": new}


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
