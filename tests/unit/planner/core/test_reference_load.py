"""Reactive scaling towards latencies. Case numbers are those of the planner.md, section c.5."""

from dataclasses import replace

import pytest
from dynamo_planner.core.observation import EngineCapabilities, Pool, PoolCounts
from dynamo_planner.core.reference import LoadReason, ReferencePolicy

from tests.building.tables import rows
from tests.unit.planner.core.reference_cases import (
    BATCHED,
    BOTH,
    DM,
    decode_caches,
    load_only,
    load_tick,
    observed,
    prefill_line,
    prefill_queues,
    requests,
)

P, D = Pool.PREFILL, Pool.DECODE
SLOW = prefill_line(1e-5, 1e-3)


def able(max_kv: int | None = None, batched: int | None = BATCHED) -> EngineCapabilities:
    return EngineCapabilities(num_gpu=1, max_num_batched_tokens=batched, max_kv_tokens=max_kv)


def decode(profile, caches, *, itl, max_kv=None, **fields):
    policy = ReferencePolicy(load_only(mode="decode", itl_ms=itl, max_gpu_budget=-1, **fields), profile=profile)
    passes = decode_caches(*caches)
    return load_tick(policy, observed(passes=passes, decode=len(passes), able=able(max_kv)))


def prefill(profile, queues, *, ttft, **fields):
    policy = ReferencePolicy(load_only(mode="prefill", ttft_ms=ttft, max_gpu_budget=-1, **fields), profile=profile)
    return load_tick(policy, observed(passes=prefill_queues(*queues), prefill=len(queues), able=able()))


def outcome(effects):
    """`replicas reason`, such as `1 scale_down`."""
    replicas = "" if effects.decision is None else f"{next(iter(effects.decision.replicas.values()))} "
    return f"{replicas}{effects.explanation.reason}"


UP, DOWN, REFUSED = "scale_up", "scale_down", "scale_down_refused_consolidation"
#: Caches of engines: tokens in use and waiting; and what is configured.
DECODE = {
    "case 7: one less when the rest keeps the target": ([(1500, 0)] * 2, {"itl": 100, "max_kv": 100_000}, f"1 {DOWN}"),
    "case 10: also where the size of the cache is not known": ([(1500, 0)] * 2, {"itl": 100}, f"1 {DOWN}"),
    "case 8: refused where the rest would miss it": ([(8000, 0)] * 2, {"itl": 100, "max_kv": 100_000}, REFUSED),
    "case 9: refused where the cache would not hold it": (
        [(60_000, 0)] * 2,
        {"itl": 10_000, "max_kv": 100_000},
        REFUSED,
    ),
    "up when every engine misses the target": ([(9000, 0), (4000, 5000)], {"itl": 50}, f"3 {UP}"),
    "not up while one engine keeps it": ([(9000, 0), (100, 0)], {"itl": 50}, REFUSED),
    "the last replica stays": ([(0, 0)], {"itl": 50}, "no_change"),
    # 71 ms when one engine has all.
    "sensitivity is a share of the target": (
        [(3000, 0)] * 2,
        {"itl": 100, "load_scaling_down_sensitivity": 80},
        f"1 {DOWN}",
    ),
    "above that share all stay": ([(3000, 0)] * 2, {"itl": 100, "load_scaling_down_sensitivity": 70}, REFUSED),
}


@rows("caches, fields, expected", DECODE)
def test_decode(caches, fields, expected):
    assert outcome(decode(DM, caches, **fields)) == expected


@pytest.mark.parametrize(("tokens", "latency"), [(1500, 41), (8000, 171)], ids=["case 7", "case 8"])
def test_the_latency_with_one_engine_fewer_is_reported(tokens, latency):
    effects = decode(DM, [(tokens, 0), (tokens, 0)], itl=100, max_kv=100_000)
    reported = effects.explanation.inputs["load"]["decode"]["consolidated_itl_ms"]
    assert reported == pytest.approx(latency, abs=0.5)


WIDE = prefill_line(1e-5, 1e-3, range(1500, 2501, 250))
PREFILL = {
    "case 11: a long queue takes no replica away": (SLOW, [30_000, 30_000], 100, f"3 {UP}"),
    "case 12: empty queues do": (SLOW, [0, 0], 100, f"1 {DOWN}"),
    "case 12: short queues do": (SLOW, [2000] * 10, 100, f"9 {DOWN}"),
    "case 13: only the wait counts against what a prompt leaves": (WIDE, [1000, 1000], 50, f"1 {DOWN}"),
    "case 13: where a prompt alone takes longer": (WIDE, [0, 0], 15, f"3 {UP}"),
    "up when every engine misses the target": (SLOW, [30_000], 100, f"2 {UP}"),
}


@rows("profile, queues, ttft, expected", PREFILL)
def test_prefill(profile, queues, ttft, expected):
    assert outcome(prefill(profile, queues, ttft=ttft)) == expected


def test_a_card_without_a_batch_limit_is_reported():
    policy = ReferencePolicy(load_only(mode="prefill"), profile=SLOW)
    effects = load_tick(policy, observed(passes=prefill_queues(1), able=able(batched=None)))
    assert outcome(effects) == "insufficient_data"
    assert "max_num_batched_tokens" in effects.explanation.message


def test_cache_hits_of_the_last_interval_count():
    policy = ReferencePolicy(load_only(mode="prefill", ttft_ms=100), profile=SLOW)
    tick = policy.first_tick(0.0)
    observation = observed(5.0, passes=prefill_queues(12_000), able=able())
    assert policy.on_tick(tick, observation).decision is not None
    hits = replace(observation, traffic=requests(10, hits=0.9))
    assert policy.on_tick(tick, hits).decision is None


AGGREGATED = {
    "down when both latencies allow it": ([(0, 0, 0)] * 2, {}, f"1 {DOWN}"),
    "not down when one does not": ([(0, 0, 1800)] * 2, {}, REFUSED),
    "up when prompts wait too long": ([(0, 0, 9000)], {}, f"2 {UP}"),
    "up when tokens take too long": ([(0, 0, 0)], {"itl_ms": 0.1}, f"2 {UP}"),
    "decoding alone decides where prompts cannot be predicted": ([(0, 0, 0)] * 2, {"batched": None}, f"1 {DOWN}"),
    "waiting prompts will want cache": ([(40, 0, 20)] * 2, {"max_kv": 110}, REFUSED),
}


@rows("caches, fields, expected", AGGREGATED)
def test_one_pool_for_both(caches, fields, expected):
    batched, max_kv = fields.pop("batched", BATCHED), fields.pop("max_kv", None)
    configured = load_only(mode="agg", max_gpu_budget=-1, **{"ttft_ms": 4000, "itl_ms": 1200, **fields})
    passes = decode_caches(*caches)
    observation = observed(passes=passes, decode=len(passes), able=able(max_kv, batched))
    assert outcome(load_tick(ReferencePolicy(configured, profile=BOTH), observation)) == expected


PASSES = decode_caches((100, 0), (100, 0))
SECOND = tuple(replace(each, dp_rank=1) for each in PASSES)
TWO, THREE, UNKNOWN = (PoolCounts(ready=2, expected=expected) for expected in (2, 3, None))
NO_ROOM = PoolCounts(ready=2, expected=4, pending=2)
BUSY = decode_caches((9000, 0), (9000, 0))
MISMATCH = "worker_count_mismatch"
PRECHECKS = {
    "no one reports": ((), TWO, "decode", "no_fpm_data"),
    "one worker is silent": (PASSES[:1], TWO, "decode", MISMATCH),
    "one rank is silent": ((*PASSES, SECOND[0]), TWO, "decode", MISMATCH),
    "all ranks of all workers report": ((*PASSES, *SECOND), TWO, "decode", f"1 {DOWN}"),
    "worker counts are unknown": (PASSES, None, "decode", MISMATCH),
    "a roll-out is under way": (PASSES, THREE, "decode", "scaling_in_progress"),
    "a roll-out of one pool for both is": (PASSES, THREE, "agg", "scaling_in_progress"),
    "of replicas without room one is given up that is not needed": (PASSES, NO_ROOM, "decode", f"3 {DOWN}"),
    "also where only one serves": (PASSES[:1], replace(NO_ROOM, ready=1, expected=3), "decode", f"2 {DOWN}"),
    "those that are needed wait on": (BUSY, NO_ROOM, "decode", "scaling_in_progress"),
    "a replica that starts is waited for": (PASSES, replace(NO_ROOM, expected=5), "decode", "scaling_in_progress"),
    "a deployment that no one knows is not taken for one": (PASSES, UNKNOWN, "decode", f"1 {DOWN}"),
}


@rows("passes, counts, mode, expected", PRECHECKS)
def test_prechecks(passes, counts, mode, expected):
    policy = ReferencePolicy(load_only(mode=mode), profile=BOTH)
    workers = {} if counts is None else {D: counts, P: counts}
    assert outcome(load_tick(policy, replace(observed(passes=passes), workers=workers))) == expected


def test_models_without_samples_report_insufficient_data():
    policy = ReferencePolicy(load_only(mode="decode"))
    assert outcome(load_tick(policy, observed(passes=decode_caches((1, 1))))) == "insufficient_data"


def test_missing_data_of_one_pool_holds_both():
    policy = ReferencePolicy(load_only(itl_ms=1), profile=BOTH)
    assert outcome(load_tick(policy, observed(passes=decode_caches((9000, 0))))) == "no_fpm_data"


def test_a_pool_scaled_to_zero_stays_there_without_demand():
    policy = ReferencePolicy(load_only(mode="decode", min_endpoint=0), profile=BOTH)
    assert outcome(load_tick(policy, observed(decode=0))) == "no_change"


def test_each_pool_moves_independently():
    policy = ReferencePolicy(load_only(max_gpu_budget=-1, ttft_ms=9000), profile=BOTH)
    passes = (*prefill_queues(0, 0), *decode_caches((9000, 0)))
    effects = load_tick(policy, observed(passes=passes, prefill=2, decode=1))
    assert effects.decision is not None
    assert effects.decision.replicas == {P: 1, D: 2}


@pytest.mark.parametrize(
    ("queue", "caches", "expected"),
    [
        pytest.param(9000, [(100, 0)] * 2, {P: 2, D: 1}, id="the other shrinks"),
        pytest.param(9000, [(9000, 0)], {P: 2, D: 2}, id="the other grows"),
        pytest.param(9000, [(1, 0)], None, id="nothing changes"),
        pytest.param(0, [(9000, 0)], {P: 1, D: 2}, id="it is not needed any more"),
    ],
)
def test_a_pool_without_room_does_not_hold_the_other(queue, caches, expected):
    policy = ReferencePolicy(load_only(max_gpu_budget=-1, ttft_ms=9000), profile=BOTH)
    passes = (*prefill_queues(queue), *decode_caches(*caches))
    observation = observed(passes=passes, decode=len(caches))
    waiting = PoolCounts(ready=1, expected=2, pending=1)
    decision = load_tick(policy, replace(observation, workers={**observation.workers, P: waiting})).decision
    assert (decision and decision.replicas) == expected


def test_a_used_up_budget_holds():
    policy = ReferencePolicy(load_only(max_gpu_budget=2, itl_ms=1, ttft_ms=9000), profile=BOTH)
    passes = (*prefill_queues(0), *decode_caches((9000, 0)))
    effects = load_tick(policy, observed(passes=passes))
    assert effects.decision is None
    assert effects.explanation.reason == LoadReason.NO_CHANGE
    assert "GPU budget" in effects.explanation.message
