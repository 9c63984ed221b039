"""The last command of each requester for a component, whatever its outcome: older commands that arrive later are
refused.

The graph stores only commands that are done or wait. This record is in memory, with a separate limit for each graph.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.lru import LruCache

from dynamo_scaler.budgets.pools import PoolKey

#: Limit for one graph: four requesters for each of at most 25 components.
_REMEMBERED = 100


class LastCommand(NamedTuple):
    """The last request of a requester."""

    requester: str
    sent: str
    at: float
    #: None: the requester withdrew its request.
    replicas: int | None


@dataclass(frozen=True, slots=True)
class LastCommands:
    """Commands by graph, component and requester."""

    _graphs: dict[ObjectKey, LruCache[tuple[str, str], LastCommand]] = field(default_factory=dict)

    def get(self, key: PoolKey, requester: str) -> LastCommand | None:
        """The last command of a requester for a component."""
        known = self._graphs.get(key.graph_key)
        return known.get((key.component, requester)) if known is not None else None

    def note(self, key: PoolKey, command: LastCommand) -> None:
        """Record the last command of its requester."""
        known = self._graphs.setdefault(key.graph_key, LruCache(_REMEMBERED))
        known[key.component, command.requester] = command

    def forget(self, graph: ObjectKey) -> None:
        """A graph is gone."""
        self._graphs.pop(graph, None)
