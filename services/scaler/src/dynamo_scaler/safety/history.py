"""Recent requests of a component, for stabilisation windows like those of Kubernetes' own autoscaler.

A number stands until another one is asked for: who wants what there is need not repeat it. It is kept in memory. After a
restart, and for a component that is asked about for the first time, the replicas that there are stand so far: a window then
begins again, which errs on the side of changing nothing.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.newest import Newest
from dynamo_shared.runtime.settings.scaler import ScalingLimits

from dynamo_scaler.budgets.pools import PoolKey

#: Numbers that are remembered of one component, each with the time when it was asked for last: a window needs no more.
_NUMBERS = 1000
#: Components that are remembered of one graph, which has 25 at most, and may have had others.
_COMPONENTS = 50


class ReplicaRequest(NamedTuple):
    """So many replicas were asked for at a Unix time, and not later."""

    at: float
    replicas: int


@dataclass(slots=True)
class RequestHistory:
    """Requests by graph and component. As many entries as there are components that were asked about."""

    _asked: dict[ObjectKey, Newest[str, dict[int, float]]] = field(default_factory=dict)

    def note(self, key: PoolKey, replicas: int, current: int, now: float) -> None:
        """A request came in."""
        # The time of day may have been set back: a window ends after its length, and not when that time comes again.
        entries = {each.replicas: min(each.at, now) for each in self.of(key, current, now)}
        entries.pop(replicas, None)
        entries[replicas] = now
        if len(entries) > _NUMBERS:
            del entries[next(iter(entries))]
        self._of(key)[key.component] = entries

    def of(self, key: PoolKey, current: int, now: float) -> tuple[ReplicaRequest, ...]:
        """Requests of a component with `current` replicas, oldest first; the last one stands."""
        entries = self._of(key).setdefault(key.component, {current: now})
        stands = next(reversed(entries))
        return tuple(ReplicaRequest(now if number == stands else at, number) for number, at in entries.items())

    def forget(self, graph: ObjectKey) -> None:
        """A graph is gone."""
        self._asked.pop(graph, None)

    def _of(self, key: PoolKey) -> Newest[str, dict[int, float]]:
        return self._asked.setdefault(key.graph_key, Newest(_COMPONENTS))


def stabilized(desired: int, current: int, asked: tuple[ReplicaRequest, ...], limits: ScalingLimits, now: float) -> int:
    """`desired`, or what within the window was asked for and changes less in its direction; never beyond `current`."""
    if desired > current:
        recent = (each.replicas for each in asked if each.at > now - limits.up.stabilization)
        return max(current, min((desired, *recent)))
    recent = (each.replicas for each in asked if each.at > now - limits.down.stabilization)
    return min(current, max((desired, *recent)))
