"""Recent requests of a component, for stabilisation windows like those of Kubernetes' own autoscaler.

A number counts until another one is requested: a requester that agrees with the current number need not repeat it. The
history is in memory. After a restart, and for the first request of a component, the current replicas count: the window
begins again, so at worst too little changes.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.lru import LruCache
from dynamo_shared.runtime.settings.scaler import ScalingLimits

from dynamo_scaler.budgets.pools import PoolKey

#: Number of remembered numbers of one component, each with the time of its last request: a window needs no more.
_NUMBERS = 1000
#: Number of remembered components of one graph, which has at most 25, and may have had others.
_COMPONENTS = 50


class ReplicaRequest(NamedTuple):
    """The last request for a number of replicas, with its Unix time."""

    at: float
    replicas: int


@dataclass(slots=True)
class RequestHistory:
    """Requests by graph and component, with an entry for each requested component."""

    _asked: dict[ObjectKey, LruCache[str, dict[int, float]]] = field(default_factory=dict)

    def note(self, key: PoolKey, replicas: int, current: int, now: float) -> None:
        """A request came in."""
        # The clock may have been set back: a window ends after its length, not when the old time is reached again.
        entries = {each.replicas: min(each.at, now) for each in self.of(key, current, now)}
        entries.pop(replicas, None)
        entries[replicas] = now
        if len(entries) > _NUMBERS:
            del entries[next(iter(entries))]
        self._of(key)[key.component] = entries

    def of(self, key: PoolKey, current: int, now: float) -> tuple[ReplicaRequest, ...]:
        """Requests of a component with `current` replicas, oldest first; the last one counts."""
        entries = self._of(key).setdefault(key.component, {current: now})
        stands = next(reversed(entries))
        return tuple(ReplicaRequest(now if number == stands else at, number) for number, at in entries.items())

    def forget(self, graph: ObjectKey) -> None:
        """A graph is gone."""
        self._asked.pop(graph, None)

    def _of(self, key: PoolKey) -> LruCache[str, dict[int, float]]:
        return self._asked.setdefault(key.graph_key, LruCache(_COMPONENTS))


def stabilized(desired: int, current: int, asked: tuple[ReplicaRequest, ...], limits: ScalingLimits, now: float) -> int:
    """`desired`, or the number requested within the window that changes less in the same direction; never beyond
    `current`.
    """
    if desired > current:
        recent = (each.replicas for each in asked if each.at > now - limits.up.stabilization)
        return max(current, min((desired, *recent)))
    recent = (each.replicas for each in asked if each.at > now - limits.down.stabilization)
    return min(current, max((desired, *recent)))
