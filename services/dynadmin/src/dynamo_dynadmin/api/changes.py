"""Who changed an object, when, and which fields: from the API server's record, `metadata.managedFields`. Pure."""

import json
from collections.abc import Iterable
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.owned_fields import Leaf, owned_fields

#: Named fields of one writer. If it has more, they are named by their first `_STEPS` steps.
MOST_FIELDS, _STEPS = 8, 3
#: Characters of a named field.
_LONGEST = 200


def changes_of(obj: KubeObject) -> list[dict[str, Any]]:
    """The writers of an object's desired state, the last one first: the time of their last change, and their fields.

    The record does not say which of its fields a writer changed last.
    """
    rows = [
        {"manager": each.manager, "time": each.time, "fields": _named(each.leaves())}
        for each in owned_fields(obj)
        if each.subresource != "status"
    ]
    return sorted((row for row in rows if row["fields"]), key=lambda row: str(row["time"]), reverse=True)


def _named(leaves: Iterable[Leaf]) -> list[str]:
    every = [path for leaf in leaves if (path := [text for each in leaf if (text := _step(each))])]
    # Who creates an object or a list owns it, too; its fields follow.
    paths = [path for path, after in zip(every, [*every[1:], []], strict=False) if after[: len(path)] != path]
    if len(paths) > MOST_FIELDS:
        paths = [path[:_STEPS] for path in paths]
    return list(dict.fromkeys("".join(path).removeprefix(".")[:_LONGEST] for path in paths))[:MOST_FIELDS]


def _step(step: str) -> str:
    """`f:spec` as `.spec`, `k:{"name":"main"}` as `[main]`; empty for a whole object or list."""
    kind, _, value = step.partition(":")
    if kind == "f":
        return f".{value}"
    if kind not in ("k", "v"):
        return ""
    try:
        key = json.loads(value)
    except ValueError:
        key = value
    names = key.values() if isinstance(key, dict) else [key]
    return f"[{', '.join(map(str, names))}]"
