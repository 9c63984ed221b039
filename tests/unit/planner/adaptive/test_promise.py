"""The promised share: an aim above it while it is not kept; the fewest GPUs that keep it; reasons for missing it."""

import re
from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import pytest
from dynamo_planner.core.adaptive import AdaptivePolicy
from dynamo_planner.core.adaptive.constant_replicas import constant_replicas
from dynamo_planner.core.adaptive.demand import RateSample
from dynamo_planner.core.adaptive.promise import MOST, WINDOW, Promise
from dynamo_planner.core.observation import Pool, PoolCounts
from dynamo_shared.api.contracts.planner import PlannerConfig

from tests.unit.planner.adaptive.test_cost_benefit import MANY, ONE, cost_benefit
from tests.unit.planner.adaptive.test_policy import ABLE, BOTH, PROFILE, Follower, config


def kept(*ticks: tuple[float, float, float], attainment: float = 0.95) -> Promise:
    promise = Promise(attainment)
    for at, requests, share in ticks:
        promise.observe(at, requests, share)
    return promise


def test_before_the_first_request_the_aim_leaves_a_margin_for_the_unexpected() -> None:
    promise = kept()
    assert promise.kept is None
    assert 0.95 < promise.aim < MOST


@pytest.mark.parametrize(
    ("ticks", "share"),
    [
        ([(10, 100, 1.0)], 1.0),
        ([(10, 100, 1.0), (20, 300, 0.0)], 0.25),
        ([(10, 100, 0.0), (20 + WINDOW, 100, 1.0)], 1.0),
        ([(10, 100, 0.5), (20, 0, 1.0)], 0.5),
        # For so few requests, their sum minus each of them is not exactly 0.
        ([(10, 0.1, 1.0), (20, 0.2, 0.5), (30, 0.3, 0.1), (40 + WINDOW, 10, 0.75)], 0.75),
    ],
)
def test_the_share_counts_the_requests_of_the_last_hour(ticks: list[tuple[float, float, float]], share: float) -> None:
    assert kept(*ticks).kept == pytest.approx(share)


def test_an_hour_without_requests_has_no_share() -> None:
    assert kept((10, 0.1, 1.0), (20, 0.2, 0.5), (30, 0.3, 0.1), (40 + WINDOW, 0, 1.0)).kept is None


HALF = WINDOW / 2


def test_missed_requests_are_made_up_for_within_the_hour_and_a_surplus_is_not_spent() -> None:
    calm, behind = kept((10, 100, 1.0), (10 + HALF, 100, 1.0)), kept((10, 100, 0.85), (10 + HALF, 100, 0.85))
    assert kept().aim == calm.aim < behind.aim <= MOST
    assert kept((10, 100, 0.0)).aim == calm.aim, "a minute is little of an hour"
    assert kept((10, 100, 0.0), (10 + HALF, 100, 0.0)).aim == MOST
    assert kept((10, 100, 0.0), attainment=0.999).aim >= 0.999


def test_replicas_are_held_for_a_larger_share_while_less_was_kept() -> None:
    assert kept().holds == kept((10, 100, 1.0)).holds == 0.95
    assert kept((10, 100, 0.93)).holds == pytest.approx(0.97)
    assert kept((10, 100, 0.0)).holds == MOST
    assert kept((10, 100, 0.0), attainment=0.999).holds == 0.999


def test_the_fewest_gpus_that_keep_a_share_grow_with_it() -> None:
    load = cost_benefit([np.full(60, 40.0)])
    sizes = [sum(load.cheapest(300, 600, share, ONE, MANY).values()) for share in (0.5, 0.9, 0.98, 0.995)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_if_nothing_within_bounds_keeps_the_share_the_best_split_is_used() -> None:
    load = cost_benefit([np.full(60, 40.0)])
    tight = {Pool.PREFILL: 2, Pool.DECODE: 8}
    assert load.cheapest(300, 600, 0.99, ONE, tight)[Pool.PREFILL] == 2


def test_a_higher_attainment_needs_more_replicas() -> None:
    sizes = []
    for attainment in (0.6, 0.99):
        graph = Follower(AdaptivePolicy(config(attainment=attainment), profile=PROFILE), BOTH)
        graph.run(37, 200)
        sizes.append(sum(graph.replicas.values()))
    assert sizes[1] > sizes[0]


def test_the_share_is_kept_without_a_risk_if_there_is_room() -> None:
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), {Pool.PREFILL: 4, Pool.DECODE: 4})
    effects = graph.run(20, 300)
    assert effects.explanation.at_risk == ""
    assert effects.explanation.predictions["attainment_aim"] > 0.95
    assert effects.explanation.predictions["attainment_of_last_hour"] > 0.95


@pytest.mark.parametrize(
    ("fields", "changes", "rate", "words"),
    [
        ({"max_gpu_budget": 2}, {}, 40, "and max_gpu_budget is 2"),
        (
            {"enable_power_awareness": True, "total_gpu_power_limit": 1000},
            {"capabilities": dict.fromkeys(BOTH, replace(ABLE, watts=500))},
            40,
            "and total_gpu_power_limit is 1000",
        ),
        ({"itl_ms": 1}, {}, 20, "no number of decode replicas meets the target"),
        (
            {},
            {"workers": {p: PoolCounts(ready=1, pending=3, expected=4) for p in BOTH}},
            40,
            "the cluster has no room for 3 prefill, 3 decode (pending): it needs 6 more GPUs",
        ),
        (
            {},
            {
                "workers": {
                    Pool.PREFILL: PoolCounts(ready=1, pending=1, expected=2),
                    Pool.DECODE: PoolCounts(ready=3, expected=3),
                }
            },
            40,
            "the cluster has no room for 1 prefill (pending): it needs 1 more GPU",
        ),
    ],
)
def test_a_share_that_cannot_be_kept_is_reported_with_the_reason_and_the_need(
    fields: dict[str, Any], changes: dict[str, Any], rate: float, words: str
) -> None:
    graph = Follower(AdaptivePolicy(config(**fields), profile=PROFILE), dict(BOTH))
    graph.run(rate, 200)
    explanation = graph.step(rate, **changes).explanation
    assert words in explanation.at_risk
    assert explanation.at_risk in explanation.message


def test_a_slow_start_is_named_while_the_last_hour_shows_it() -> None:
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), dict(BOTH), startup=120.0)
    graph.replicas = {Pool.PREFILL: 1, Pool.DECODE: 1}
    for _ in range(12):
        graph.step(60, workers={pool: PoolCounts(ready=1, expected=1) for pool in BOTH})
    graph.replicas = {Pool.PREFILL: 9, Pool.DECODE: 9}
    explanation = graph.step(60).explanation
    assert "need 120 s to start" in explanation.at_risk
    assert re.search(
        r"constant prefill \d+, decode \d+ \(\d+ GPUs, as min_endpoint\) would have kept \d+ %", explanation.at_risk
    )


def test_replicas_that_suffice_for_the_last_hour_keep_the_share() -> None:
    load, (calm, busy) = cost_benefit([np.full(60, 40.0)]), (6.0, 40.0)
    samples = [RateSample(10.0 * at, busy if at % 6 == 0 else calm, 10.0) for at in range(1, 121)]
    stood = constant_replicas(load.pools, samples, 0.95)
    assert stood is not None
    counts, share = stood
    assert share >= 0.95
    lasting = constant_replicas(load.pools, [RateSample(10.0 * at, busy, 10.0) for at in range(1, 121)], 0.95)
    assert lasting is not None
    assert sum(lasting[0].values()) >= sum(counts.values())
    fewer = constant_replicas(load.pools, samples, 0.3)
    assert fewer is not None
    assert sum(fewer[0].values()) < sum(counts.values())


def test_too_short_a_past_says_nothing() -> None:
    load = cost_benefit([np.full(60, 40.0)])
    assert constant_replicas(load.pools, [RateSample(10.0, 5.0, 10.0)] * 5, 0.95) is None
    assert constant_replicas(load.pools, [RateSample(10.0, 0.0, 10.0)] * 50, 0.95) is None


def test_a_price_replaces_the_promise() -> None:
    graph = Follower(AdaptivePolicy(config(gpu_price=0.7, max_gpu_budget=2), profile=PROFILE), BOTH)
    explanation = graph.run(40, 200).explanation
    assert explanation.at_risk == ""
    assert "attainment_aim" not in explanation.predictions
    remarks = dict(PlannerConfig.model_validate({"gpu_price": 0.5, "attainment": 0.9}).remarks())
    assert "ignored with gpu_price" in remarks[("attainment",)]


def test_a_warm_reserve_is_part_of_the_plan_and_of_its_reason() -> None:
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), BOTH, startup=120)
    effects = graph.run(20, 200)
    assert "are a warm reserve" in effects.explanation.message
    assert (
        "since a start takes as long as a burst; if no burst comes within 400 s, the reserve shrinks"
        in effects.explanation.message
    )
    reserve = {pool: effects.explanation.predictions[f"{pool.value}_warm_reserve"] for pool in Pool}
    assert 0 < sum(reserve.values()) < sum(graph.replicas.values())
    calm = graph.run(20, 1200)
    assert "warm reserve" not in calm.explanation.message


def test_a_first_climb_is_followed_in_proportion_and_the_reason_says_so() -> None:
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), BOTH, startup=120)
    messages = [graph.step(5 * exp(at / 60)).explanation.message for at in range(10, 100, 10)]
    assert any("the load rises and may continue to rise in proportion" in message for message in messages)


def test_a_target_that_no_replicas_can_meet_is_reported_once() -> None:
    graph = Follower(AdaptivePolicy(config(ttft_ms=1), profile=PROFILE), BOTH)
    message = graph.run(5, 100).explanation.message
    assert message.count("no number of prefill replicas meets the target") == 1
    assert "cannot meet" not in message
