"""Reactive scaling towards latencies. Case numbers are those of the planner.md, section c.5."""

from dataclasses import replace

import pytest
from dynamo_planner.core.observing import EngineCapabilities, Pool, PoolCounts
from dynamo_planner.core.reference import LoadReason, ReferencePolicy

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
    replicas = None if effects.decision is None else next(iter(effects.decision.replicas.values()))
    return replicas, effects.explanation.load_reason


class TestDecode:
    @pytest.mark.parametrize("max_kv", [100_000, None], ids=["case 7", "case 10"])
    def test_cases_7_and_10_one_less_when_the_rest_keeps_the_target(self, max_kv):
        effects = decode(DM, [(1500, 0), (1500, 0)], itl=100, max_kv=max_kv)
        assert outcome(effects) == (1, LoadReason.SCALE_DOWN)
        reported = effects.explanation.inputs["load"]["decode"]["consolidated_itl_ms"]
        assert reported == pytest.approx(41, abs=0.5)

    def test_case_8_refused_where_the_rest_would_miss_it(self):
        effects = decode(DM, [(8000, 0), (8000, 0)], itl=100, max_kv=100_000)
        assert outcome(effects) == (None, LoadReason.SCALE_DOWN_REFUSED_CONSOLIDATION)
        assert effects.explanation.inputs["load"]["decode"]["consolidated_itl_ms"] == pytest.approx(171, abs=0.5)

    def test_case_9_refused_where_the_cache_would_not_hold_it(self):
        effects = decode(DM, [(60_000, 0), (60_000, 0)], itl=10_000, max_kv=100_000)
        assert outcome(effects) == (None, LoadReason.SCALE_DOWN_REFUSED_CONSOLIDATION)

    def test_up_when_every_engine_misses_the_target(self):
        assert outcome(decode(DM, [(9000, 0), (4000, 5000)], itl=50)) == (3, LoadReason.SCALE_UP)

    def test_not_up_while_one_engine_keeps_it(self):
        assert outcome(decode(DM, [(9000, 0), (100, 0)], itl=50))[0] is None

    def test_the_last_replica_stays(self):
        assert outcome(decode(DM, [(0, 0)], itl=50)) == (None, LoadReason.NO_CHANGE)

    def test_sensitivity_is_a_share_of_the_target(self):
        caches = [(3000, 0), (3000, 0)]  # 71 ms when one engine has all
        assert outcome(decode(DM, caches, itl=100, load_scaling_down_sensitivity=80))[0] == 1
        assert outcome(decode(DM, caches, itl=100, load_scaling_down_sensitivity=70))[0] is None


class TestPrefill:
    def test_case_11_a_long_queue_takes_no_replica_away(self):
        assert outcome(prefill(SLOW, [30_000, 30_000], ttft=100)) == (3, LoadReason.SCALE_UP)

    @pytest.mark.parametrize(("queues", "replicas"), [([0, 0], 1), ([2000] * 10, 9)])
    def test_case_12_short_queues_do(self, queues, replicas):
        assert outcome(prefill(SLOW, queues, ttft=100)) == (replicas, LoadReason.SCALE_DOWN)

    def test_case_13_only_the_wait_counts_against_what_a_prompt_leaves(self):
        profile = prefill_line(1e-5, 1e-3, range(1500, 2501, 250))
        assert outcome(prefill(profile, [1000, 1000], ttft=50)) == (1, LoadReason.SCALE_DOWN)
        assert outcome(prefill(profile, [0, 0], ttft=15))[0] != 1

    def test_up_when_every_engine_misses_the_target(self):
        assert outcome(prefill(SLOW, [30_000], ttft=100)) == (2, LoadReason.SCALE_UP)

    def test_a_card_without_a_batch_limit_is_reported(self):
        policy = ReferencePolicy(load_only(mode="prefill"), profile=SLOW)
        effects = load_tick(policy, observed(passes=prefill_queues(1), able=able(batched=None)))
        assert outcome(effects) == (None, LoadReason.INSUFFICIENT_DATA)
        assert "max_num_batched_tokens" in effects.explanation.message

    def test_cache_hits_of_the_last_interval_count(self):
        policy = ReferencePolicy(load_only(mode="prefill", ttft_ms=100), profile=SLOW)
        tick = policy.first_tick(0.0)
        observation = observed(5.0, passes=prefill_queues(12_000), able=able())
        assert policy.on_tick(tick, observation).decision is not None
        hits = replace(observation, traffic=requests(10, hits=0.9))
        assert policy.on_tick(tick, hits).decision is None


class TestAggregated:
    def run(self, caches, *, batched=BATCHED, max_kv=None, **fields):
        policy = ReferencePolicy(
            load_only(mode="agg", max_gpu_budget=-1, **{"ttft_ms": 4000, "itl_ms": 1200, **fields}), profile=BOTH
        )
        passes = decode_caches(*caches)
        return load_tick(policy, observed(passes=passes, decode=len(passes), able=able(max_kv, batched)))

    def test_down_only_when_both_latencies_allow_it(self):
        assert outcome(self.run([(0, 0, 0), (0, 0, 0)])) == (1, LoadReason.SCALE_DOWN)
        assert outcome(self.run([(0, 0, 1800), (0, 0, 1800)]))[0] is None

    def test_up_when_prompts_wait_too_long(self):
        assert outcome(self.run([(0, 0, 9000)])) == (2, LoadReason.SCALE_UP)

    def test_up_when_tokens_take_too_long(self):
        assert outcome(self.run([(0, 0, 0)], itl_ms=0.1)) == (2, LoadReason.SCALE_UP)

    def test_decoding_alone_decides_where_prompts_cannot_be_predicted(self):
        assert outcome(self.run([(0, 0, 0), (0, 0, 0)], batched=None)) == (1, LoadReason.SCALE_DOWN)

    def test_waiting_prompts_will_want_cache(self):
        effects = self.run([(40, 0, 20), (40, 0, 20)], max_kv=110)
        assert outcome(effects) == (None, LoadReason.SCALE_DOWN_REFUSED_CONSOLIDATION)


class TestPrechecks:
    passes = decode_caches((100, 0), (100, 0))
    counts = PoolCounts(ready=2, expected=2)

    def plan(self, passes=passes, counts=counts, **fields):
        policy = ReferencePolicy(load_only(**{"mode": "decode", **fields}), profile=BOTH)
        observation = replace(observed(passes=passes), workers={D: counts, P: counts})
        return load_tick(policy, observation)

    def test_no_one_reports(self):
        assert outcome(self.plan(())) == (None, LoadReason.NO_FPM_DATA)

    def test_one_worker_is_silent(self):
        assert outcome(self.plan(self.passes[:1])) == (None, LoadReason.WORKER_COUNT_MISMATCH)

    def test_one_rank_is_silent(self):
        passes = (*self.passes, replace(self.passes[0], dp_rank=1))
        assert outcome(self.plan(passes)) == (None, LoadReason.WORKER_COUNT_MISMATCH)

    def test_all_ranks_of_all_workers_report(self):
        passes = (*self.passes, *(replace(each, dp_rank=1) for each in self.passes))
        assert outcome(self.plan(passes)) == (1, LoadReason.SCALE_DOWN)

    def test_worker_counts_are_unknown(self):
        policy = ReferencePolicy(load_only(mode="decode"), profile=BOTH)
        effects = load_tick(policy, replace(observed(passes=self.passes), workers={}))
        assert outcome(effects) == (None, LoadReason.WORKER_COUNT_MISMATCH)

    @pytest.mark.parametrize("mode", ["decode", "agg"])
    def test_a_roll_out_is_under_way(self, mode):
        effects = self.plan(counts=PoolCounts(ready=2, expected=3), mode=mode)
        assert outcome(effects) == (None, LoadReason.SCALING_IN_PROGRESS)

    def test_a_deployment_that_no_one_knows_is_not_taken_for_one(self):
        assert outcome(self.plan(counts=PoolCounts(ready=2, expected=None)))[0] == 1

    def test_models_that_have_learnt_nothing(self):
        policy = ReferencePolicy(load_only(mode="decode"))
        assert outcome(load_tick(policy, observed(passes=decode_caches((1, 1))))) == (
            None,
            LoadReason.INSUFFICIENT_DATA,
        )

    def test_a_pool_of_two_that_is_not_known_holds_both(self):
        policy = ReferencePolicy(load_only(itl_ms=1), profile=BOTH)
        effects = load_tick(policy, observed(passes=decode_caches((9000, 0))))
        assert outcome(effects) == (None, LoadReason.NO_FPM_DATA)

    def test_scaled_to_zero_stays_there_without_demand(self):
        policy = ReferencePolicy(load_only(mode="decode", min_endpoint=0), profile=BOTH)
        assert outcome(load_tick(policy, observed(decode=0))) == (None, LoadReason.NO_CHANGE)


class TestDisaggregated:
    def test_each_pool_moves_by_itself(self):
        policy = ReferencePolicy(load_only(max_gpu_budget=-1, ttft_ms=9000), profile=BOTH)
        passes = (*prefill_queues(0, 0), *decode_caches((9000, 0)))
        effects = load_tick(policy, observed(passes=passes, prefill=2, decode=1))
        assert effects.decision is not None
        assert effects.decision.replicas == {P: 1, D: 2}

    def test_a_budget_that_is_used_up_holds(self):
        policy = ReferencePolicy(load_only(max_gpu_budget=2, itl_ms=1, ttft_ms=9000), profile=BOTH)
        passes = (*prefill_queues(0), *decode_caches((9000, 0)))
        effects = load_tick(policy, observed(passes=passes))
        assert effects.decision is None
        assert effects.explanation.load_reason == LoadReason.NO_CHANGE
        assert "GPU budget" in effects.explanation.message
