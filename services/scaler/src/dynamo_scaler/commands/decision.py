"""The decision about a request: safety limits each component, and budgets check all components together. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dynamo_shared.api.gpu_budget import BudgetFit
from dynamo_shared.api.gpus import words as gpu_words
from dynamo_shared.wire.specifications.scaling_decisions import BudgetFigures

from dynamo_scaler.budgets.intents import Intent, OpenIntent
from dynamo_scaler.budgets.ledger import Account
from dynamo_scaler.budgets.pools import DesiredPool, PoolKey
from dynamo_scaler.budgets.transfers import Partner, Settlement, settle
from dynamo_scaler.safety.verdict import PoolVerdict, Situation, judge

CEILING, FLOOR, UNKNOWN_GPUS = "BudgetCeiling", "BudgetFloor", "GpusUnknown"
APPLIED, PAIRED, UNCHANGED = "Applied", "Paired", "Unchanged"


class ScaleOutcome(StrEnum):
    """The outcome of a request."""

    APPLY = "apply"
    """Something is done now; the rest may be held."""
    NOTHING = "nothing"
    """It is so already."""
    HOLD = "hold"
    """Nothing is done now, and it is carried out when it may be."""
    REFUSE = "refuse"
    """It is not done."""


@dataclass(frozen=True, slots=True)
class DecisionInputs:
    """The inputs of a decision."""

    pools: Mapping[PoolKey, DesiredPool]
    #: Budgets that count a pool of the request, with all their pools.
    accounts: Sequence[Account]
    #: Returns fresh open intents of pools in these budgets. There may be hundreds, and most decisions breach no budget,
    #: so they are read only if a budget is breached.
    intents: Callable[[], Sequence[OpenIntent]]
    situation: Callable[[DesiredPool], Situation]
    now: float


@dataclass(frozen=True, slots=True)
class CommandDecision:
    """The result: what is done, what is not, and why."""

    outcome: ScaleOutcome
    reason: str
    message: str
    #: Verdicts about the request's components, in its order.
    verdicts: Sequence[PoolVerdict]
    #: Verdicts about components that are paired with the request.
    partners: Sequence[PoolVerdict] = ()
    #: The intents of these partners.
    intents: Mapping[PoolKey, Intent] = field(default_factory=dict)
    figures: Sequence[BudgetFigures] = field(default=())

    @property
    def changes(self) -> list[PoolVerdict]:
        """The changes to write, shrinking pools first."""
        if self.outcome is not ScaleOutcome.APPLY:
            return []
        every = [each for each in (*self.verdicts, *self.partners) if each.changes]
        return sorted(every, key=lambda each: each.allowed > each.pool.current)


def decide(desired: Mapping[PoolKey, int], inputs: DecisionInputs) -> CommandDecision:
    """Decide about a request: replicas by pool."""
    verdicts = [
        judge(inputs.pools[key], n, inputs.situation(inputs.pools[key]), inputs.now) for key, n in desired.items()
    ]
    changes = {each.pool.key: each.allowed for each in verdicts if each.changes}
    settlement = settle(inputs.accounts, changes)
    offered = [] if settlement.allowed else _offered(inputs, desired)
    partners = [Partner(each.key, verdict.allowed, each.intent.at) for each, verdict in offered]
    if partners:
        settlement = settle(inputs.accounts, changes, partners)
    waiting = [each for each in verdicts if each.held]

    def nothing_done(outcome: ScaleOutcome, reason: str, message: str) -> CommandDecision:
        return CommandDecision(outcome, reason, message, verdicts, figures=settlement.figures)

    if not settlement.allowed:
        in_full = {each.pool.key: each.desired for each in verdicts}
        if waiting and settle(inputs.accounts, in_full, partners).allowed:
            # A part of the request would breach a budget that the whole does not: it waits for the other part.
            return nothing_done(ScaleOutcome.HOLD, waiting[0].reason, _held(waiting))
        if settlement.fit is BudgetFit.UNKNOWN:
            return nothing_done(ScaleOutcome.HOLD, UNKNOWN_GPUS, _not_known(settlement))
        return nothing_done(ScaleOutcome.REFUSE, *_breach(settlement))
    if changes:
        return _applied(inputs, verdicts, offered, settlement)
    limited = [each for each in verdicts if each.reason]
    if waiting:
        return nothing_done(ScaleOutcome.HOLD, waiting[0].reason, _held(limited))
    if limited:
        return nothing_done(ScaleOutcome.REFUSE, limited[0].reason, _held(limited))
    so = ", ".join(f"{each.pool.key.component} {each.pool.current}" for each in verdicts)
    return nothing_done(ScaleOutcome.NOTHING, UNCHANGED, f"already at the requested replicas: {so}")


def _applied(
    inputs: DecisionInputs,
    verdicts: Sequence[PoolVerdict],
    offered: Sequence[tuple[OpenIntent, PoolVerdict]],
    settlement: Settlement,
) -> CommandDecision:
    paired = {each.key: (each.intent, verdict) for each, verdict in offered if each.key in settlement.partners}
    partners = [verdict for _, verdict in paired.values()]
    done = [_change(each) for each in verdicts if each.changes] + [_change(each, whole=True) for each in partners]
    rest = [_why(each) for each in verdicts if each.reason]
    return CommandDecision(
        ScaleOutcome.APPLY,
        PAIRED if paired else APPLIED,
        "; ".join([*done, *rest, *_advice(inputs, settlement.changes)]),
        verdicts,
        partners,
        {key: intent for key, (intent, _) in paired.items()},
        settlement.figures,
    )


def _offered(inputs: DecisionInputs, desired: Mapping[PoolKey, int]) -> list[tuple[OpenIntent, PoolVerdict]]:
    """Intents of others that safety allows now."""
    offers = []
    for each in inputs.intents():
        if each.key not in desired:
            verdict = judge(each.pool, each.intent.replicas, inputs.situation(each.pool), inputs.now)
            if verdict.changes:
                offers.append((each, verdict))
    return offers


def _breach(settlement: Settlement) -> tuple[str, str]:
    account = settlement.breached
    assert account is not None
    budget, after = account.budget, account.after(settlement.changes)
    above = settlement.fit is BudgetFit.ABOVE_CEILING
    bound = f"ceiling of {budget.max_gpus}" if above else f"floor of {budget.min_gpus}"
    sought = "releases enough GPUs" if above else "requests enough GPUs"
    known = " known" if account.unknown(settlement.changes) else ""
    return (
        CEILING if above else FLOOR,
        f"budget {budget.name}: {gpu_words(after)}{known}, {'above' if above else 'below'} its {bound} "
        f"(now {account.before}), and no other component of the budget {sought}",
    )


def _not_known(settlement: Settlement) -> str:
    account = settlement.breached
    assert account is not None
    return f"budget {account.budget.name}: {_why_unknown(account, settlement.changes)}"


def _why_unknown(account: Account, changes: Mapping[PoolKey, int]) -> str:
    pools = account.unknown(changes)
    more = f" and {len(pools) - 1} more" if len(pools) > 1 else ""
    return f"the GPUs of {pools[0].key}{more} are not known: {'; '.join(pools[0].unknown)}"


def _advice(inputs: DecisionInputs, changes: Mapping[PoolKey, int]) -> Iterator[str]:
    for each in inputs.accounts:
        fit = each.fit(changes) if each.budget.advisory else BudgetFit.WITHIN
        if fit is BudgetFit.UNKNOWN:
            yield f"budget {each.budget.name} (advisory): {_why_unknown(each, changes)}"
        elif fit is not BudgetFit.WITHIN:
            yield f"budget {each.budget.name} (advisory): {gpu_words(each.after(changes))} are out of its bounds"


def _held(waiting: Sequence[PoolVerdict]) -> str:
    return "; ".join(map(_why, waiting))


def _why(verdict: PoolVerdict) -> str:
    pool = verdict.pool
    stays = f"not yet at {verdict.desired}" if verdict.held else "scales no further"
    if not verdict.changes:
        stays = f"stays at {pool.current}"
    return f"{pool.key.component} {stays}: {verdict.reason}: {verdict.message}"


def _change(verdict: PoolVerdict, *, whole: bool = False) -> str:
    key = verdict.pool.key
    return f"{key if whole else key.component} {verdict.pool.current} -> {verdict.allowed}"
