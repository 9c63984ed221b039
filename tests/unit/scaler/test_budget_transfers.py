"""The Global Planner's rules: planner.md (c) 5, case 24, with its numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from dynamo_scaler.budgets.intents import Intent, OpenIntent
from dynamo_scaler.budgets.ledger import Account, includes, is_managed
from dynamo_scaler.budgets.pools import DesiredPool, PoolKey
from dynamo_scaler.budgets.transfers import Partner, settle
from dynamo_scaler.commands.decision import CommandDecision, DecisionInputs, ScaleOutcome, decide
from dynamo_scaler.safety.verdict import Situation
from dynamo_shared.api.gpu_budget import BudgetFit
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.runtime.settings.scaler import Budget, Direction, ScalingLimits
from hypothesis import given
from hypothesis import strategies as st

LIFETIME = 360.0
FREE = ScalingLimits(min=0, down=Direction())
PREFILL, DECODE = PoolKey("team", "a", "Prefill"), PoolKey("team", "a", "Decode")
B_PREFILL, B_DECODE = PoolKey("team", "b", "Prefill"), PoolKey("team", "b", "Decode")


def pool(key: PoolKey, current: int = 3, gpus: int = 1) -> DesiredPool:
    return DesiredPool(key, key.component.lower(), current, gpus)


def accounts(budgets: Iterable[Budget], pools: Iterable[DesiredPool]) -> list[Account]:
    """Each budget with the pools that count in it."""
    every = [Account(budget) for budget in budgets]
    for each in pools:
        for account in every:
            if account.includes(each.key.graph_key):
                account.put(each)
    return every


def intent(of: DesiredPool, replicas: int, at: float = 0.0) -> OpenIntent:
    return OpenIntent(of, Intent(replicas=replicas, current=of.current, at=at, command=f"earlier-{of.key}"))


def asked(
    desired: Mapping[PoolKey, int],
    pools: Sequence[DesiredPool],
    budget: Budget,
    intents: Sequence[OpenIntent] = (),
    now: float = 100.0,
) -> CommandDecision:
    fresh = [each for each in intents if each.intent.is_fresh(now, LIFETIME) and each.intent.is_open(each.pool)]
    by_key = {each.key: each for each in pools}
    world = DecisionInputs(by_key, accounts([budget], pools), lambda: fresh, lambda _: Situation(FREE), now)
    return decide(desired, world)


def applied(decision: CommandDecision) -> dict[PoolKey, int]:
    return {each.pool.key: each.allowed for each in decision.changes}


SIX = Budget(name="six", min_gpus=6, max_gpus=6)


class ReadByKey(dict[PoolKey, DesiredPool]):
    """Pools that may not be iterated: there may be a hundred thousand, and thousands of partners are tried."""

    def __iter__(self) -> Any:
        raise AssertionError("all pools of the cluster are read")

    keys = values = items = __iter__


def test_a_trial_iterates_only_over_the_pools_that_it_changes() -> None:
    account = Account(SIX)
    account._pools = ReadByKey()
    for each in (PREFILL, DECODE):
        account.put(pool(each))
    assert (account.before, account.after({PREFILL: 1, B_DECODE: 9})) == (6, 4)
    assert account.fit({PREFILL: 1}) is BudgetFit.BELOW_FLOOR


def test_at_most_fifty_partners_join_a_transfer() -> None:
    keys = [PoolKey("team", f"p{number:03}", "Decode") for number in range(60)]
    every = accounts([Budget(name="all", max_gpus=180)], [pool(PREFILL), *(pool(key, 3) for key in keys[:59])])
    partners = [Partner(key, 2, 0.0) for key in keys[:59]]
    assert len(settle(every, {PREFILL: 53}, partners).partners) == 50
    assert not settle(every, {PREFILL: 54}, partners).allowed


def test_scaling_down_prefill_alone_breaches_the_floor_and_is_rejected() -> None:
    decision = asked({PREFILL: 2}, [pool(PREFILL), pool(DECODE)], SIX)
    assert (decision.outcome, decision.reason) == (ScaleOutcome.REFUSE, "BudgetFloor")
    assert "5 GPUs, below its floor of 6 (now 6)" in decision.message
    assert applied(decision) == {}


def test_prefill_and_decode_scale_together_if_decode_has_an_intent() -> None:
    decode = pool(DECODE)
    decision = asked({PREFILL: 2}, [pool(PREFILL), decode], SIX, [intent(decode, 4)])
    assert (decision.outcome, decision.reason) == (ScaleOutcome.APPLY, "Paired")
    assert applied(decision) == {PREFILL: 2, DECODE: 4}
    assert decision.message == "Prefill 3 -> 2; team/a Decode 3 -> 4"


def test_other_intents_are_read_only_if_a_budget_blocks_the_command() -> None:
    """Otherwise each decision about a held request would read hundreds of requests."""
    pools = [pool(PREFILL), pool(DECODE)]
    checked: list[str] = []

    def others() -> list[OpenIntent]:
        checked.append("at them")
        return []

    world = DecisionInputs(
        {each.key: each for each in pools}, accounts([SIX], pools), others, lambda _: Situation(FREE), 0.0
    )
    assert decide({PREFILL: 2, DECODE: 4}, world).reason == "Applied"
    assert checked == []
    assert decide({PREFILL: 2}, world).reason == "BudgetFloor"
    assert checked == ["at them"]


def test_a_transfer_between_two_graphs_scales_down_first() -> None:
    twelve = Budget(name="twelve", min_gpus=12, max_gpus=12)
    pools = [pool(PREFILL), pool(DECODE), pool(B_PREFILL), pool(B_DECODE)]
    decision = asked({PREFILL: 2}, pools, twelve, [intent(pools[3], 4)])
    assert [(each.pool.key, each.allowed) for each in decision.changes] == [(PREFILL, 2), (B_DECODE, 4)]
    other_way = asked({B_DECODE: 4}, pools, twelve, [intent(pools[0], 2)])
    assert [(each.pool.key, each.allowed) for each in other_way.changes] == [(PREFILL, 2), (B_DECODE, 4)]


@pytest.mark.parametrize(("age", "outcome"), [(359.9, ScaleOutcome.APPLY), (360.0, ScaleOutcome.REFUSE)])
def test_an_expired_intent_is_not_a_partner(age: float, outcome: ScaleOutcome) -> None:
    decode = pool(DECODE)
    decision = asked({PREFILL: 2}, [pool(PREFILL), decode], SIX, [intent(decode, 4, at=0.0)], now=age)
    assert decision.outcome is outcome


def test_a_command_above_the_ceiling_is_rejected() -> None:
    decision = asked({DECODE: 4}, [pool(PREFILL), pool(DECODE)], SIX)
    assert (decision.outcome, decision.reason) == (ScaleOutcome.REFUSE, "BudgetCeiling")


def test_an_intent_of_the_same_direction_is_not_a_partner() -> None:
    pools = [pool(PREFILL), pool(DECODE), pool(B_DECODE)]
    budget = Budget(name="nine", min_gpus=9, max_gpus=9)
    assert asked({PREFILL: 2}, pools, budget, [intent(pools[2], 2)]).outcome is ScaleOutcome.REFUSE


def test_an_intent_that_is_outdated_or_already_met_is_not_a_partner() -> None:
    decode = pool(DECODE)
    stale = OpenIntent(decode, Intent(replicas=4, current=2, at=0.0, command="before another user scaled it"))
    done = OpenIntent(decode, Intent(replicas=3, current=3, at=0.0, command="as it is"))
    for each in (stale, done):
        assert asked({PREFILL: 2}, [pool(PREFILL), decode], SIX, [each]).outcome is ScaleOutcome.REFUSE


def test_a_transfer_may_miss_the_floor_by_one_replica_and_never_exceeds_the_ceiling() -> None:
    big, small = pool(PREFILL, 2, gpus=4), pool(DECODE, 4, gpus=1)
    budget = Budget(name="twelve", min_gpus=12, max_gpus=12)
    # Four GPUs back, three taken: one is missing, and one replica of four may be.
    fits = asked({PREFILL: 1}, [big, small], budget, [intent(small, 7)])
    assert applied(fits) == {PREFILL: 1, DECODE: 7}
    (figures,) = fits.figures
    assert (figures.before, figures.after, figures.tolerance) == (12, 11, 4)
    assert asked({PREFILL: 1}, [big, small], budget, [intent(small, 9)]).outcome is ScaleOutcome.REFUSE


def test_one_command_may_be_a_whole_transfer() -> None:
    decision = asked({PREFILL: 2, DECODE: 4}, [pool(PREFILL), pool(DECODE)], SIX)
    assert (decision.reason, applied(decision)) == ("Applied", {PREFILL: 2, DECODE: 4})


def test_the_oldest_sufficient_partner_is_used_and_several_only_if_no_single_one_suffices() -> None:
    pools = [pool(PREFILL), pool(DECODE), pool(B_PREFILL), pool(B_DECODE)]
    budget = Budget(name="twelve", min_gpus=12, max_gpus=12)
    older, newer = intent(pools[2], 2, at=1.0), intent(pools[1], 2, at=2.0)
    assert applied(asked({B_DECODE: 4}, pools, budget, [newer, older])) == {B_PREFILL: 2, B_DECODE: 4}
    both = asked({B_DECODE: 5}, pools, budget, [newer, older])
    assert applied(both) == {B_PREFILL: 2, DECODE: 2, B_DECODE: 5}


def test_usage_outside_the_bounds_may_move_towards_them() -> None:
    pools = [pool(PREFILL, 6), pool(DECODE, 6)]
    ceiling = Budget(name="new", max_gpus=8)
    assert applied(asked({PREFILL: 5, DECODE: 6}, pools, ceiling)) == {PREFILL: 5}
    assert asked({PREFILL: 7}, pools, ceiling).outcome is ScaleOutcome.REFUSE
    floor = Budget(name="new", min_gpus=20)
    assert applied(asked({PREFILL: 5, DECODE: 8}, pools, floor)) == {PREFILL: 5, DECODE: 8}
    assert asked({PREFILL: 5}, pools, floor).outcome is ScaleOutcome.REFUSE


def test_every_budget_that_counts_a_pool_must_allow_the_change() -> None:
    pools = [pool(PREFILL), pool(DECODE)]
    budgets = [Budget(name="team", namespaces=("team",), max_gpus=20), Budget(name="cluster", max_gpus=6)]
    settlement = settle(accounts(budgets, pools), {DECODE: 4})
    assert settlement.fit is BudgetFit.ABOVE_CEILING
    assert settlement.breached is not None
    assert settlement.breached.budget.name == "cluster"
    assert [each.name for each in settlement.figures] == ["team", "cluster"]


def test_an_advisory_budget_reports_and_rejects_nothing() -> None:
    budget = Budget(name="six", max_gpus=6, advisory=True)
    decision = asked({DECODE: 4}, [pool(PREFILL), pool(DECODE)], budget)
    assert applied(decision) == {DECODE: 4}
    assert "budget six (advisory): 7 GPUs are out of its bounds" in decision.message


def test_a_budget_counts_the_graphs_that_it_selects() -> None:
    key = ObjectKey("team", "a")
    assert includes(key, (), ())
    assert includes(key, ("team",), ())
    assert not includes(key, ("other",), ())
    assert includes(key, (), ("a",))
    assert includes(key, (), ("team/a",))
    assert not includes(key, (), ("other/a",))
    assert is_managed(key, ())
    assert is_managed(key, ("team",))
    assert is_managed(key, ("team/a",))
    assert not is_managed(key, ("a", "team/b"))


KEYS = [PoolKey("n", f"g{n}", "c") for n in range(5)]
POOLS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=5, max_size=5)
DESIRED = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 12), max_size=5)


@given(POOLS, DESIRED, DESIRED, st.integers(-1, 60), st.integers(-1, 60))
def test_no_decision_exceeds_a_ceiling_that_was_kept_before(
    sizes: list[tuple[int, int]], desired: dict[PoolKey, int], others: dict[PoolKey, int], first: int, second: int
) -> None:
    floor, ceiling = sorted((first, second))
    pools = [pool(key, current, gpus) for key, (current, gpus) in zip(KEYS, sizes, strict=True)]
    every = accounts([Budget(name="b", min_gpus=floor, max_gpus=ceiling)], pools)
    changes = {key: n for key, n in desired.items() if n != next(p for p in pools if p.key == key).current}
    partners = [Partner(key, n, float(index)) for index, (key, n) in enumerate(others.items())]
    settlement = settle(every, changes, partners)
    (account,) = every
    before, after = account.before, account.after(settlement.changes)
    if not settlement.allowed:
        return
    assert {key: settlement.changes[key] for key in changes} == changes
    if ceiling >= 0:
        assert after <= max(ceiling, before)
    if floor >= 0:
        assert after >= min(floor - 4, before)


def test_numbers_fit_into_the_fields_that_report_them() -> None:
    pools = [pool(PREFILL, 2**31 - 1, 1_000_000), pool(DECODE)]
    (reported,) = asked({DECODE: 2}, pools, Budget(name="any", max_gpus=6)).figures
    assert msgspec.convert(msgspec.to_builtins(reported), type(reported)) == reported


@pytest.mark.parametrize(
    ("budget", "changes", "fit"),
    [
        # Whatever the unknown pools use, this command takes no more than before.
        (Budget(name="b", max_gpus=6), {}, BudgetFit.WITHIN),
        (Budget(name="b", max_gpus=6), {PREFILL: 2}, BudgetFit.WITHIN),
        (Budget(name="b", max_gpus=6), {DECODE: 2}, BudgetFit.WITHIN),
        (Budget(name="b", max_gpus=6), {DECODE: 4}, BudgetFit.UNKNOWN),
        (Budget(name="b", max_gpus=6), {PREFILL: 4}, BudgetFit.UNKNOWN),
        (Budget(name="b", max_gpus=6), {PREFILL: 7}, BudgetFit.ABOVE_CEILING),
        # Pools without replicas use no GPUs.
        (Budget(name="b", max_gpus=6), {PREFILL: 4, DECODE: 0}, BudgetFit.WITHIN),
        (Budget(name="b", min_gpus=3), {PREFILL: 4, DECODE: 9}, BudgetFit.WITHIN),
        (Budget(name="b", min_gpus=3), {DECODE: 2}, BudgetFit.WITHIN),
        (Budget(name="b", min_gpus=4), {DECODE: 2}, BudgetFit.BELOW_FLOOR),
        (Budget(name="b", min_gpus=4), {DECODE: 4}, BudgetFit.WITHIN),
    ],
)
def test_unknown_gpus_count_as_neither_zero_nor_sufficient(
    budget: Budget, changes: Mapping[PoolKey, int], fit: BudgetFit
) -> None:
    pools = [pool(PREFILL), replace(pool(DECODE, gpus=0), unknown=("they wait",))]
    (account,) = accounts([budget], pools)
    assert account.fit(changes) is fit


def test_a_certain_breach_is_reported_before_a_possible_one() -> None:
    unknown = replace(pool(DECODE, gpus=0), unknown=("they wait",))
    budgets = [Budget(name="may", max_gpus=9), Budget(name="is", max_gpus=3)]
    settlement = settle(accounts(budgets, [pool(PREFILL), unknown]), {PREFILL: 4})
    assert settlement.breached is not None
    assert (settlement.breached.budget.name, settlement.fit) == ("is", BudgetFit.ABOVE_CEILING)


@pytest.mark.parametrize(
    ("current", "replicas", "gained"), [(0, 2, 10), (2, 0, -10), (1, 3, 4), (3, 1, -4), (0, 0, 0), (2, 2, 0)]
)
def test_a_shared_claim_counts_from_the_first_replica_until_the_last(current: int, replicas: int, gained: int) -> None:
    sharing = replace(pool(DECODE, current, gpus=2), shared={ObjectKey("team", "six"): 6})
    assert sharing.gained(replicas) == gained
