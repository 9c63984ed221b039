"""The writer of a number, from `metadata.managedFields`. Pure.

The watcher publishes objects without managedFields, so these functions take an object from the API server.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.owned_fields import managers_of
from dynamo_shared.lru import LruCache

FIELD_MANAGER = "dynamo-scaler"
#: Field managers of the platform that write a graph's replicas, now or in the past: `manager` is the reference
#: operator.
PLATFORM_MANAGERS = frozenset({FIELD_MANAGER, "dynamo-pod-builder", "manager"})
UNKNOWN_WRITER = "an unknown writer"
#: How long a write is remembered to detect writers that take turns. Seconds.
WINDOW = 300.0
#: Number of adapters whose writers are remembered; beyond it, the least recently changed are forgotten.
CAPACITY = 10_000


def of_adapter(adapter: KubeObject) -> str:
    """The field manager that last set `spec.replicas` of an adapter; UNKNOWN_WRITER if unknown.

    Kubernetes omits a 0 from a Scale, treats the field as removed, and then tracks no later writer either (it only
    tracks fields that have an owner).
    """
    return next(iter(managers_of(adapter, "spec", "replicas")), "") or UNKNOWN_WRITER


def of_component(graph: KubeObject, component: str) -> list[str]:
    """Field managers of `replicas` of a graph's component, the latest first; empty if the number is not set."""
    writers = managers_of(graph, "spec", "components", {"name": component}, "replicas")
    return [each or UNKNOWN_WRITER for each in writers]


@dataclass(slots=True)
class WriterConflicts:
    """Detects that two writers of one adapter undo each other's work: one, another, and the first again."""

    clock: Callable[[], float]
    _turns: LruCache[str, deque[tuple[str, int, float]]] = field(default_factory=lambda: LruCache(CAPACITY))

    def record(self, uid: str, writer: str, replicas: int) -> tuple[str, str] | None:
        """A writer set a number. Returns the two that take turns, the present one first; None otherwise."""
        turns = self._turns[uid] = self._turns.get(uid) or deque(maxlen=3)
        now = self.clock()
        if turns and turns[-1][0] == writer:
            turns[-1] = (writer, replicas, now)
            return None
        turns.append((writer, replicas, now))
        if len(turns) < 3 or now - turns[0][2] > WINDOW:
            return None
        (first, replicas, _), (other, undone, _), _ = turns
        return (writer, other) if first == writer and replicas != undone else None
