"""The accounts of all budgets, kept up to date as graphs change.

Adding up all pools of a large cluster for each decision would take a tenth of a second or more.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from dynamo_shared.aio import Pauses
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.runtime.settings.scaler import Budget

from dynamo_scaler.budgets.ledger import Account
from dynamo_scaler.budgets.pools import DesiredPool

#: Graphs that are counted before other tasks run: reading the pools of one takes up to a millisecond.
_COUNTED_AT_A_TIME = 10


class BudgetAccounts:
    """Counts the pools of changed graphs before the next decision. `pools_of` returns none for a graph that is gone."""

    def __init__(self, budgets: Iterable[Budget], pools_of: Callable[[ObjectKey], Sequence[DesiredPool]]) -> None:
        self._accounts = [Account(each) for each in budgets]
        self._pools_of = pools_of
        self._changed: dict[ObjectKey, None] = {}
        """graphs to count again"""
        self._counted: dict[ObjectKey, Sequence[DesiredPool]] = {}

    def add(self, graph: ObjectKey) -> None:
        """A graph is new, or has changed."""
        if self._including((graph,)):
            self._changed[graph] = None

    def recount(self, graph: ObjectKey) -> None:
        """Something else changed on which the pools of a graph depend. There may be no such graph."""
        if graph in self._counted:
            self._changed[graph] = None

    def remove(self, graph: ObjectKey) -> None:
        """The graph is gone."""
        self._changed.pop(graph, None)
        self._count(graph, ())

    async def update(self) -> None:
        """Count changed graphs, and let other tasks run: after a start, no graph is counted."""
        pauses = Pauses(_COUNTED_AT_A_TIME)
        for graph in tuple(self._changed):
            self._update(graph)
            if pauses.due():
                await asyncio.sleep(0)

    def of(self, graphs: Iterable[ObjectKey]) -> list[Account]:
        """The accounts in which any of these graphs counts, as they are now. Valid until a graph changes."""
        included = self._including(graphs)
        for graph in tuple(self._changed) if included else ():
            self._update(graph)
        return included

    def _including(self, graphs: Iterable[ObjectKey]) -> list[Account]:
        keys = tuple(graphs)
        return [account for account in self._accounts if any(map(account.includes, keys))]

    def _update(self, graph: ObjectKey) -> None:
        if graph in self._changed:
            self._count(graph, self._pools_of(graph))
            del self._changed[graph]

    def _count(self, graph: ObjectKey, pools: Sequence[DesiredPool]) -> None:
        before = self._counted.pop(graph, ())
        if pools:
            self._counted[graph] = pools
        gone = {pool.key for pool in before} - {pool.key for pool in pools}
        for account in self._including((graph,)):
            for key in gone:
                account.remove(key)
            for pool in pools:
                account.put(pool)
