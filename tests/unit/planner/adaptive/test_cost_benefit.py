"""What replicas bring for their price: enough if a load lasts, none if it ends first, both pools or neither."""

from dataclasses import replace

import numpy as np
import pytest
from dynamo_planner.core.adaptive.cost_benefit import CostBenefit, PoolState, Rates
from dynamo_planner.core.adaptive.needs import by_share
from dynamo_planner.core.adaptive.sizers import DecodeSizer, Load, PrefillSizer
from dynamo_planner.core.observation import Pool

from tests.unit.planner.adaptive.test_sizers import ABLE, ENGINE

LEADS = np.arange(0.0, 600.0, 10.0)
ONE = {Pool.PREFILL: 1, Pool.DECODE: 1}
MANY = {Pool.PREFILL: 8, Pool.DECODE: 8}


def cost_benefit(
    rates: list[np.ndarray], *, backlog: float = 0.0, price: float = 0.3, startup: float = 300.0
) -> CostBenefit:
    load = Load(20, 3000, 200)
    prefill, decode = PrefillSizer(ENGINE, load, 250, ABLE, 15.0), DecodeSizer(ENGINE, load, 10, ABLE)
    best = 1 / (1 / prefill.capacity + 1 / decode.capacity)
    one = PoolState(sizer=decode, ready=1, asked=1, startup=startup, gpus=1, least=1, most=8)
    pools = {Pool.PREFILL: replace(one, sizer=prefill, backlog=backlog), Pool.DECODE: one}
    return CostBenefit(pools, Rates(leads=LEADS, rates=np.array(rates)), price * best)


def started(of: CostBenefit) -> dict[Pool, int]:
    return of.best(300, 600, 600, ONE, MANY)


def test_a_lasting_load_is_worth_a_start_and_a_short_one_is_not() -> None:
    lasts = started(cost_benefit([np.full(60, 40.0)]))
    assert lasts[Pool.PREFILL] >= 3
    assert started(cost_benefit([np.where(LEADS < 250, 20.0, 5.0)])) == ONE


def test_holding_for_recurring_bursts_is_worth_their_probability() -> None:
    calm, burst = np.full(60, 5.0), np.full(60, 40.0)
    seldom, often = started(cost_benefit([calm] * 19 + [burst])), started(cost_benefit([calm, burst]))
    assert seldom == ONE
    assert often[Pool.PREFILL] > 1


def test_a_higher_price_never_buys_more() -> None:
    sizes = [sum(started(cost_benefit([np.full(60, 40.0)], price=p)).values()) for p in (0.1, 0.3, 0.6, 0.9, 2.0)]
    assert sizes == sorted(sizes, reverse=True)


def test_waiting_prompts_need_prefill_and_take_no_decode_away() -> None:
    calm, queued = (started(cost_benefit([np.full(60, 30.0)], backlog=backlog)) for backlog in (0.0, 3000.0))
    assert queued[Pool.PREFILL] >= calm[Pool.PREFILL]
    assert queued[Pool.DECODE] >= calm[Pool.DECODE]


def test_replicas_that_start_for_a_rise_are_kept() -> None:
    up, keep = by_share(cost_benefit([np.where(LEADS < 300, 20.0, 30.0)]), 300.0, 0.9)
    assert keep == up == {Pool.PREFILL: 7, Pool.DECODE: 3}


def test_the_alternatives_of_a_choice_are_reported() -> None:
    made = cost_benefit([np.full(60, 20.0)])
    around = made.around(Pool.PREFILL, {Pool.PREFILL: 2, Pool.DECODE: 2}, 300, 600)
    assert sorted(around) == [1, 2, 3]
    assert around[1] < around[2] <= around[3] <= 20
    assert list(made.around(Pool.PREFILL, ONE, 300, 600)) == [1, 2]


@pytest.mark.parametrize("count", [1, 4, 8])
def test_bounds_are_kept(count: int) -> None:
    exactly = {Pool.PREFILL: count, Pool.DECODE: count}
    assert cost_benefit([np.full(60, 20.0)]).best(0, 300, 300, exactly, exactly) == exactly
