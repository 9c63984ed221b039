"""The last command of each requester for a component, whatever became of it: what arrives later, and is older, is refused.

A graph has only what is done or waits. This is kept in memory, for each graph by itself: the commands of others take no
place of a graph's own.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.newest import Newest

from dynamo_scaler.budgets.pools import PoolKey

#: Of one graph: four requesters for each of the 25 components that it has at most.
_REMEMBERED = 100


class LastCommand(NamedTuple):
    """What a requester asked for last."""

    requester: str
    sent: str
    at: float
    #: None: it withdrew.
    replicas: int | None


@dataclass(frozen=True, slots=True)
class LastCommands:
    """Commands by graph, component and requester."""

    _graphs: dict[ObjectKey, Newest[tuple[str, str], LastCommand]] = field(default_factory=dict)

    def get(self, key: PoolKey, requester: str) -> LastCommand | None:
        """The last command of a requester for a component."""
        known = self._graphs.get(key.graph_key)
        return known.get((key.component, requester)) if known is not None else None

    def note(self, key: PoolKey, command: LastCommand) -> None:
        """A command is the last one of its requester."""
        known = self._graphs.setdefault(key.graph_key, Newest(_REMEMBERED))
        known[key.component, command.requester] = command

    def forget(self, graph: ObjectKey) -> None:
        """A graph is gone."""
        self._graphs.pop(graph, None)
