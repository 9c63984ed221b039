"""Separates the errors that an update introduces from the errors that its object had before: an object that is older
than a rule stays changeable.

An item of a list is identified by its name: if an item moves because another is inserted before it, its errors are not
new. Items without names are counted: one more item with the same error is a new error.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.reading import mapping

#: Steps of a path in messages: a key, a quoted key, a position.
_STEP = re.compile(r'([^.\[\]]+)|\[("(?:[^"\\]|\\.)*")\]|\[(\d+)\]')
_POSITION = re.compile(r"\[\d+\]")


def introduced(
    errors: Sequence[FieldError], obj: KubeObject, before: Sequence[FieldError], old: KubeObject
) -> tuple[list[FieldError], list[FieldError]]:
    """The errors that the object has in addition to those of `old` (`before`), and the errors that it had already."""
    known = Counter(_identity(each, old) for each in before)
    new: list[FieldError] = []
    kept: list[FieldError] = []
    for error in errors:
        identity = _identity(error, obj)
        (kept if known[identity] > 0 else new).append(error)
        known[identity] -= 1
    return new, kept


def _identity(error: FieldError, obj: KubeObject) -> tuple[tuple[str, ...], str]:
    """An error with item names instead of positions, if the items have names."""
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
        # A key with escaped control characters.
        return quoted
