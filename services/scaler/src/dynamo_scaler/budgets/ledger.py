"""The budgets in which a graph counts, and their GPUs. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dynamo_shared.api.gpu_budget import BudgetFit
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.runtime.settings.scaler import Budget

from dynamo_scaler.budgets.pools import DesiredPool, PoolKey


def includes(graph: ObjectKey, namespaces: Iterable[str], deployments: Iterable[str]) -> bool:
    """Whether a graph matches namespaces and names (`name`, `namespace/name`); without names, all graphs match."""
    spaces, names = tuple(namespaces), tuple(deployments)
    if spaces and graph.namespace not in spaces:
        return False
    return not names or graph.name in names or str(graph) in names


def is_managed(graph: ObjectKey, managed: Iterable[str]) -> bool:
    """Whether commands may scale a graph: `managed` names namespaces and graphs (`namespace/name`); empty means all."""
    listed = tuple(managed)
    return not listed or graph.namespace in listed or str(graph) in listed


@dataclass(frozen=True, slots=True)
class Account:
    """A budget, and the pools that count in it."""

    budget: Budget
    pools: Mapping[PoolKey, DesiredPool]
    #: GPUs of all pools as they are: added up once, since a decision may try thousands of changes.
    _now: int = field(init=False)
    #: By a ResourceClaim that pools share: its GPUs, and how many pools with replicas have it.
    _claims: dict[ObjectKey, int] = field(init=False)
    _holders: Counter[ObjectKey] = field(init=False)
    _unknown: list[DesiredPool] = field(init=False)

    def __post_init__(self) -> None:
        pools = self.pools.values()
        claims = {claim: number for pool in pools for claim, number in pool.shared.items()}
        holders = Counter(claim for pool in pools if pool.current for claim in pool.shared)
        added_up = {
            "_now": sum(pool.current * pool.gpus for pool in pools) + sum(claims[each] for each in holders),
            "_claims": claims,
            "_holders": holders,
            "_unknown": [pool for pool in pools if pool.unknown],
        }
        for name, value in added_up.items():
            object.__setattr__(self, name, value)

    @property
    def before(self) -> int:
        """GPUs of all desired replicas, as far as known."""
        return self.after({})

    def after(self, changes: Mapping[PoolKey, int]) -> int:
        """GPUs of all desired replicas, were some pools of these sizes. A ResourceClaim that several pools share counts once."""
        gpus, more = self._now, Counter[ObjectKey]()
        for pool, replicas in self._changed(changes):
            gpus += (replicas - pool.current) * pool.gpus
            for claim in pool.shared:
                more[claim] += bool(replicas) - bool(pool.current)
        for claim, added in more.items():
            gpus += (bool(self._holders[claim] + added) - bool(self._holders[claim])) * self._claims[claim]
        return gpus

    def unknown(self, changes: Mapping[PoolKey, int]) -> list[DesiredPool]:
        """Pools with replicas that may have more GPUs than are known, were some pools of these sizes."""
        return [pool for pool in self._unknown if changes.get(pool.key, pool.current)]

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
        below = self.budget.min_gpus >= 0 and after < self.budget.min_gpus - allowance
        if below and (after < before or min(moved, default=0) < 0):
            return BudgetFit.BELOW_FLOOR
        takes_more = after > before or max(moved, default=0) > 0
        if self.budget.max_gpus >= 0 and takes_more and self.unknown(changes):
            return BudgetFit.UNKNOWN
        return BudgetFit.WITHIN

    def _changed(self, changes: Mapping[PoolKey, int]) -> Iterator[tuple[DesiredPool, int]]:
        return ((self.pools[key], replicas) for key, replicas in changes.items() if key in self.pools)


def accounts(budgets: Iterable[Budget], pools: Iterable[DesiredPool]) -> list[Account]:
    """Each budget with the pools that count in it."""
    every = {pool.key: pool for pool in pools}
    return [
        Account(
            budget,
            {
                key: pool
                for key, pool in every.items()
                if includes(key.graph_key, budget.namespaces, budget.deployments)
            },
        )
        for budget in budgets
    ]
