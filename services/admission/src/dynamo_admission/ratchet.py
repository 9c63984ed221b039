"""Which errors an update brings, and which its object had before: what was stored before a rule existed stays changeable.

A place in a list is the item there, by its name: one that moves, as another is put before it, is where it was. Items
without names count: one more with the same error is a new error.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.reading import mapping

#: Steps of a path as messages have it: a key, a quoted key, a position.
_STEP = re.compile(r'([^.\[\]]+)|\[("(?:[^"\\]|\\.)*")\]|\[(\d+)\]')
_POSITION = re.compile(r"\[\d+\]")


def introduced(
    errors: Sequence[FieldError], obj: KubeObject, before: Sequence[FieldError], old: KubeObject
) -> tuple[list[FieldError], list[FieldError]]:
    """Errors of an object that it did not have as `old`, which has those `before`; and the others."""
    known = Counter(_identity(each, old) for each in before)
    new: list[FieldError] = []
    kept: list[FieldError] = []
    for error in errors:
        identity = _identity(error, obj)
        (kept if known[identity] > 0 else new).append(error)
        known[identity] -= 1
    return new, kept


def _identity(error: FieldError, obj: KubeObject) -> tuple[tuple[str, ...], str]:
    """An error without positions: names of the items in their stead, where they have names."""
    steps: list[str] = []
    node: Any = obj
    for key, quoted, position in _STEP.findall(error.path):
        if position:
            node = node[int(position)] if isinstance(node, list) and int(position) < len(node) else None
            name = mapping(node).get("name")
            steps.append(f"[{name}]" if isinstance(name, str) else "[]")
            continue
        step = _unquoted(quoted) if quoted else key
        node = mapping(node).get(step)
        steps.append(step)
    return tuple(steps), _POSITION.sub("[]", error.message)


def _unquoted(quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        # A key with control characters, which are shown.
        return quoted
