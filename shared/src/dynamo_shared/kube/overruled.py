"""Objects that the API server, or a webhook that it calls, does not store as written.

They are left alone for a while: every reconcile would write them again in vain, and report an update.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.kube import coverage

log = structlog.get_logger("dynamo.kube")

#: How long an object that is not stored as written is left alone: its webhook may be corrected. Seconds.
LEFT_ALONE = 600.0


@dataclass(frozen=True, slots=True)
class _Overruled:
    desired: KubeObject
    stored: KubeObject
    until: float
    """when it is written again, on the clock"""


class _Memory(Protocol):
    """Data by uid of an object. It forgets deleted objects, and keeps nothing for them."""

    def get(self, uid: str, /) -> _Overruled | None: ...

    def keep(self, obj: KubeObject, value: _Overruled, /) -> None: ...


@dataclass(frozen=True, slots=True)
class OverruledWrites:
    """The writes that were changed. `clock` is monotonic, in seconds."""

    memory: _Memory
    clock: Callable[[], float]

    def compare(self, written: KubeObject, stored: KubeObject) -> None:
        """Remember a write if it was changed. `stored` is in the cache by now, unless it was deleted."""
        if lacks := coverage.missing(written, stored):
            self.memory.keep(stored, _Overruled(written, _lasting(stored), self.clock() + LEFT_ALONE))
            words = "the API server, or a webhook that it calls, does not store an object as written"
            log.warning(words, kind=stored["kind"], key=str(resources.key_of(stored)), lacks=lacks)

    def have(self, desired: KubeObject, observed: KubeObject) -> bool:
        """Whether the same was written a while ago, and the object is still what was stored then."""
        known = self.memory.get(objects.uid(observed))
        return (
            known is not None
            and self.clock() < known.until
            and known.desired == desired
            and not coverage.missing(known.stored, observed)
        )


def _lasting(obj: KubeObject) -> KubeObject:
    """An object without what changes although no one writes it."""
    metadata = {"labels": objects.labels(obj), "annotations": objects.annotations(obj)}
    return {**objects.without_status(obj), "metadata": metadata}
