"""Whether budgets allow changes, alone or paired with earlier requests: the Global Planner's rules. Pure.

1. Every budget that the changes touch keeps its bounds: allowed.
2. A ceiling would be exceeded, or a floor missed: some fresh intent of the opposite direction, of another pool in that
   budget, may make up for it. Both are then done in one transfer. The oldest that suffices alone is taken; where none does,
   the oldest that suffice together.
   Of intents together fifty are tried at most.
3. GPUs of some replicas are not known yet: nothing makes up for that, and the changes wait until they are.
4. Otherwise the changes are refused, and remembered as intents for others to be paired with.

A transfer may miss the floor by a tolerance, the GPUs of its largest replica, and never exceeds the ceiling.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from dynamo_shared.api.gpu_budget import BudgetFit, band_tolerance
from dynamo_shared.wire.specifications.scaling_decisions import BudgetFigures

from dynamo_scaler.budgets.ledger import Account
from dynamo_scaler.budgets.pools import PoolKey

#: Partners that are taken together: each is a write, and they are tried one more at a time.
_TOGETHER = 50
#: Figures are published in 32 bits, and graphs may ask for any number of replicas.
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Partner:
    """An open intent that may be paired: its pool, and the replicas that safety allows."""

    key: PoolKey
    replicas: int
    at: float


@dataclass(frozen=True, slots=True)
class Settlement:
    """The result of the budgets: all changes of the transfer, their owners, and the breached bound, if any."""

    changes: Mapping[PoolKey, int]
    partners: Sequence[PoolKey] = ()
    breached: Account | None = None
    fit: BudgetFit = BudgetFit.WITHIN
    figures: Sequence[BudgetFigures] = field(default=())

    @property
    def allowed(self) -> bool:
        """Whether the changes may be made."""
        return self.fit is BudgetFit.WITHIN


def settle(every: Sequence[Account], changes: Mapping[PoolKey, int], partners: Sequence[Partner] = ()) -> Settlement:
    """Check changes (replicas by pool) against the budgets."""
    breach = _breach(every, changes)
    if breach is None:
        return Settlement(changes, figures=figures(every, changes))
    account, fit = breach
    for chosen in () if fit is BudgetFit.UNKNOWN else _combinations(account, fit, changes, partners):
        trial = {**changes, **{each.key: each.replicas for each in chosen}}
        if _breach(every, trial) is None:
            return Settlement(trial, [each.key for each in chosen], figures=figures(every, trial))
    return Settlement(changes, breached=account, fit=fit, figures=figures(every, changes))


def figures(every: Sequence[Account], changes: Mapping[PoolKey, int]) -> list[BudgetFigures]:
    """The figures of each budget that counts a pool of the changes."""
    return [
        BudgetFigures(
            name=account.budget.name,
            min_gpus=account.budget.min_gpus,
            max_gpus=account.budget.max_gpus,
            before=min(account.before, _LARGEST),
            after=min(account.after(changes), _LARGEST),
            tolerance=min(_allowance(account, changes), _LARGEST),
            unknown=[str(pool.key) for pool in account.unknown(changes)],
        )
        for account in _touched(every, changes)
    ]


def _touched(every: Sequence[Account], changes: Mapping[PoolKey, int]) -> list[Account]:
    return [account for account in every if any(key in account.pools for key in changes)]


def _breach(every: Sequence[Account], changes: Mapping[PoolKey, int]) -> tuple[Account, BudgetFit] | None:
    """The first breached bound, otherwise the first bound that may be breached."""
    breaches = [
        (account, fit)
        for account in _touched(every, changes)
        if not account.budget.advisory
        and (fit := account.fit(changes, _allowance(account, changes))) is not BudgetFit.WITHIN
    ]
    return min(breaches, key=lambda each: each[1] is BudgetFit.UNKNOWN, default=None)


def _allowance(account: Account, changes: Mapping[PoolKey, int]) -> int:
    """The GPUs that a transfer between pools may leave missing at the floor."""
    moved = [(account.pools[key], replicas) for key, replicas in changes.items() if key in account.pools]
    takes = any(replicas < pool.current for pool, replicas in moved)
    gives = any(replicas > pool.current for pool, replicas in moved)
    if not (takes and gives):
        return 0
    each = (pool.gpus for pool, replicas in moved if replicas != pool.current)
    return band_tolerance(account.budget.min_gpus, account.budget.max_gpus, each)


def _combinations(
    account: Account, fit: BudgetFit, changes: Mapping[PoolKey, int], partners: Sequence[Partner]
) -> Iterator[Sequence[Partner]]:
    """Each suitable partner alone, oldest first; then the oldest two together, three, and so on."""
    suitable = sorted(
        (
            each
            for each in partners
            if (pool := account.pools.get(each.key)) is not None
            and each.key not in changes
            and (each.replicas < pool.current if fit is BudgetFit.ABOVE_CEILING else each.replicas > pool.current)
        ),
        key=lambda each: (each.at, each.key),
    )
    return chain(
        ([each] for each in suitable), (suitable[:number] for number in range(2, min(len(suitable), _TOGETHER) + 1))
    )
