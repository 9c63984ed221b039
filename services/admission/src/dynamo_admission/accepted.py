"""What the first webhook accepted a moment ago: the second one checks again only what is different by then.

The API server asks both about each new object. What is wrong with an object follows from itself, its author and what the
platform knows; where all of that is the same, so is the answer. Of the metadata, what the API server gives each new object
between the two calls is read by no rule.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from dynamo_shared.api.embedded import Checker
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.validation import Facts

#: Objects that are remembered until the second call; what is larger, in bytes as JSON, is checked again.
MOST, LARGEST = 64, 32 << 10
#: What the API server fills in between the two calls.
_GIVEN = frozenset({"uid", "creationTimestamp", "generation", "managedFields"})


class _Accepted(NamedTuple):
    facts: Facts
    checker: Checker
    warnings: Sequence[str]


class AcceptedObjects:
    """New objects without an error, and the warnings about them. Each is remembered for one question."""

    def __init__(self) -> None:
        # Not `Newest`: large bodies are reviewed in threads.
        self._known: OrderedDict[bytes, _Accepted] = OrderedDict()

    def remember(self, obj: KubeObject, facts: Facts, checker: Checker, warnings: Sequence[str]) -> None:
        """An object has no error."""
        key = _content(obj)
        if len(key) > LARGEST:
            return
        self._known[key] = _Accepted(facts, checker, warnings)
        if len(self._known) > MOST:
            self._known.popitem(last=False)

    def take(self, obj: KubeObject, facts: Facts, checker: Checker) -> Sequence[str] | None:
        """The warnings about an object that was accepted; None where it is to be checked."""
        if not self._known:
            return None
        known = self._known.pop(_content(obj), None)
        return known.warnings if known is not None and known.facts == facts and known.checker is checker else None


def _content(obj: KubeObject) -> bytes:
    """All of an object that may be read: as JSON, since 1 and true are equal in Python."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        obj = {**obj, "metadata": {name: value for name, value in metadata.items() if name not in _GIVEN}}
    return msgspec.json.encode(obj, order="sorted")
