"""Objects that the first webhook has just accepted: the second webhook checks only what has changed since.

The API server calls both webhooks for each new object. The answer depends only on the object, its author and the facts
that the platform knows: if all are equal, the answer is equal. No rule reads the metadata that the API server sets
between the two calls.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from dynamo_shared.api.embedded import Checker
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.validation import Facts

#: Number of objects that are remembered until the second call, and their largest size in bytes of JSON; larger objects
#: are checked again.
MOST, LARGEST = 64, 32 << 10
#: What the API server fills in between the two calls.
_GIVEN = frozenset({"uid", "creationTimestamp", "generation", "managedFields"})


class _Accepted(NamedTuple):
    facts: Facts
    checker: Checker
    warnings: Sequence[str]


class AcceptedObjects:
    """New objects without an error, and their warnings. Each is remembered for one call."""

    def __init__(self) -> None:
        # Not `LruCache`: large bodies are reviewed in threads.
        self._known: OrderedDict[bytes, _Accepted] = OrderedDict()

    def remember(self, obj: KubeObject, facts: Facts, checker: Checker, warnings: Sequence[str]) -> None:
        """Remember an object without an error."""
        key = _content(obj)
        if len(key) > LARGEST:
            return
        self._known[key] = _Accepted(facts, checker, warnings)
        if len(self._known) > MOST:
            self._known.popitem(last=False)

    def take(self, obj: KubeObject, facts: Facts, checker: Checker) -> Sequence[str] | None:
        """The warnings about an accepted object; None if the object must be checked."""
        if not self._known:
            return None
        known = self._known.pop(_content(obj), None)
        return known.warnings if known is not None and known.facts == facts and known.checker is checker else None


def _content(obj: KubeObject) -> bytes:
    """All parts of an object that a rule may read: as JSON, because 1 and true are equal in Python."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        obj = {**obj, "metadata": {name: value for name, value in metadata.items() if name not in _GIVEN}}
    return msgspec.json.encode(obj, order="sorted")
