"""The budgets in which a graph counts, and their GPUs. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from dynamo_shared.api.gpu_budget import BudgetFit
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.runtime.settings.scaler import Budget

from dynamo_scaler.budgets.pools import DesiredPool, PoolKey


def includes(graph: ObjectKey, namespaces: Collection[str], names: Collection[str]) -> bool:
    """Whether a graph matches namespaces and names (`name`, `namespace/name`); without names, all graphs match."""
    if namespaces and graph.namespace not in namespaces:
        return False
    return not names or graph.name in names or str(graph) in names


def is_managed(graph: ObjectKey, managed: Collection[str]) -> bool:
    """Whether commands may scale a graph: `managed` names namespaces and graphs (`namespace/name`); empty means all."""
    return not managed or graph.namespace in managed or str(graph) in managed


class _SharedClaim:
    """A ResourceClaim that pools share."""

    def __init__(self) -> None:
        self.pools: Counter[int] = Counter()
        """by its GPUs: pools that name it. They agree, except while some of them are counted again."""
        self.holders = 0
        """pools with replicas that name it"""

    def taken(self, more: int = 0) -> int:
        """GPUs that count, were there so many more holders."""
        return max(self.pools) if self.holders + more else 0


class Account:
    """A budget, the pools that count in it, and the sum of their GPUs.

    The sum is kept as pools change: there may be a hundred thousand, and a decision may try thousands of changes.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._pools: dict[PoolKey, DesiredPool] = {}
        self._now = 0
        self._claims: dict[ObjectKey, _SharedClaim] = {}
        self._unknown: dict[PoolKey, DesiredPool] = {}

    @property
    def pools(self) -> Mapping[PoolKey, DesiredPool]:
        """The pools that count in the budget."""
        return self._pools

    def includes(self, graph: ObjectKey) -> bool:
        """Whether a graph counts in the budget."""
        return includes(graph, self.budget.namespaces, self.budget.deployments)

    def put(self, pool: DesiredPool) -> None:
        """Count a pool, or count it again as it is now."""
        if (before := self._pools.get(pool.key)) is not None:
            self._add(before, -1)
        self._pools[pool.key] = pool
        self._add(pool, 1)
        if pool.unknown:
            self._unknown[pool.key] = pool
        else:
            self._unknown.pop(pool.key, None)

    def remove(self, key: PoolKey) -> None:
        """The pool no longer counts."""
        if (pool := self._pools.pop(key, None)) is not None:
            self._add(pool, -1)
            self._unknown.pop(key, None)

    def _add(self, pool: DesiredPool, sign: int) -> None:
        self._now += sign * pool.current * pool.gpus
        for key, number in pool.shared.items():
            claim = self._claims.setdefault(key, _SharedClaim())
            self._now -= claim.taken()
            claim.pools[number] += sign
            claim.holders += sign * bool(pool.current)
            if not claim.pools[number]:
                del claim.pools[number]
            self._now += claim.taken()
            if not claim.pools:
                del self._claims[key]

    @property
    def before(self) -> int:
        """GPUs of all desired replicas, as far as known."""
        return self._now

    def after(self, changes: Mapping[PoolKey, int]) -> int:
        """GPUs of all desired replicas, were some pools of these sizes. A ResourceClaim that several pools share counts once."""
        gpus, more = self._now, Counter[ObjectKey]()
        for pool, replicas in self._changed(changes):
            gpus += (replicas - pool.current) * pool.gpus
            for key in pool.shared:
                more[key] += bool(replicas) - bool(pool.current)
        for key, added in more.items():
            claim = self._claims[key]
            gpus += claim.taken(added) - claim.taken()
        return gpus

    def unknown(self, changes: Mapping[PoolKey, int]) -> list[DesiredPool]:
        """Pools with replicas that may have more GPUs than are known, were some pools of these sizes."""
        return [pool for pool in self._unknown.values() if changes.get(pool.key, pool.current)]

    def fit(self, changes: Mapping[PoolKey, int], allowance: int = 0) -> BudgetFit:
        """The state of the budget after changes.

        A budget that is already out of bounds (it is new, or a user scaled without a command) may always come closer to
        them, so a change breaches a bound only if it makes things worse. `allowance`: GPUs that may be missing at the
        floor.

        Unknown GPUs may be any number: a change that may take more of them never fits below a ceiling, and only known
        GPUs count towards a floor.
        """
        before, after = self.before, self.after(changes)
        if 0 <= self.budget.max_gpus < after and after > before:
            return BudgetFit.ABOVE_CEILING
        moved = [replicas - pool.current for pool, replicas in self._changed(changes) if pool.unknown]
        below = after < self.budget.min_gpus - allowance
        if below and (after < before or min(moved, default=0) < 0):
            return BudgetFit.BELOW_FLOOR
        takes_more = after > before or max(moved, default=0) > 0
        if self.budget.max_gpus >= 0 and takes_more and self.unknown(changes):
            return BudgetFit.UNKNOWN
        return BudgetFit.WITHIN

    def _changed(self, changes: Mapping[PoolKey, int]) -> Iterator[tuple[DesiredPool, int]]:
        return ((self._pools[key], replicas) for key, replicas in changes.items() if key in self._pools)
