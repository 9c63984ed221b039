"""Properties of every decision, whatever is observed."""

from dataclasses import replace

from dynamo_planner.core.limits import Limits
from dynamo_planner.core.observation import (
    EngineCapabilities,
    EngineWork,
    ForwardPass,
    Observation,
    Pool,
    PoolCounts,
    Traffic,
)
from dynamo_planner.core.reference import LoadReason, ReferencePolicy, ThroughputReason
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.planner.core.reference_cases import BOTH, config, observed, requests, throughput_tick

numbers = st.floats(0, 1e6) | st.sampled_from([float("nan"), float("inf"), 0.0])
traffic = st.none() | st.builds(
    Traffic,
    duration=st.sampled_from([0.0, 1.0, 60.0]),
    requests=numbers,
    isl=numbers,
    osl=numbers,
    kv_hit_rate=st.none() | st.floats(-1, 2) | st.just(float("nan")),
)
counts = st.builds(PoolCounts, ready=st.integers(0, 12), expected=st.none() | st.integers(0, 12))
tokens = st.integers(0, 200_000)
passes = st.builds(
    ForwardPass,
    pool=st.sampled_from(Pool),
    worker_id=st.sampled_from(["a", "b", "c"]),
    dp_rank=st.integers(0, 1),
    wall_time=st.floats(0, 5),
    scheduled=st.builds(
        EngineWork,
        num_prefill_requests=st.integers(0, 5),
        sum_prefill_tokens=tokens,
        num_decode_requests=st.integers(0, 50),
        sum_decode_kv_tokens=tokens,
    ),
    queued=st.builds(EngineWork, sum_prefill_tokens=tokens, sum_decode_kv_tokens=tokens),
)
sizes = st.none() | st.integers(1, 10_000)
capabilities = st.builds(
    EngineCapabilities,
    num_gpu=st.sampled_from([None, 1, 2, 8]),
    watts=st.sampled_from([300, 700]),
    max_num_batched_tokens=sizes,
    max_num_seqs=sizes,
    context_length=sizes,
    max_kv_tokens=sizes,
)
observations = st.builds(
    Observation,
    now=st.just(60.0),
    traffic=traffic,
    workers=st.dictionaries(st.sampled_from(Pool), counts),
    forward_passes=st.lists(passes, max_size=6).map(tuple),
    capabilities=st.dictionaries(st.sampled_from(Pool), capabilities),
)
configs = st.builds(
    config,
    mode=st.sampled_from(["disagg", "prefill", "decode", "agg"]),
    optimization_target=st.sampled_from(["sla", "throughput", "latency"]),
    enable_load_scaling=st.booleans(),
    load_predictor=st.sampled_from(["constant", "kalman"]),
    min_endpoint=st.integers(0, 3),
    max_gpu_budget=st.integers(-1, 40),
    min_gpu_budget=st.integers(-1, 20),
    prefill_engine_num_gpu=st.sampled_from([1, 2, 4]),
    decode_engine_num_gpu=st.sampled_from([1, 2, 4]),
    load_min_observations=st.just(2),
    enable_power_awareness=st.booleans(),
    total_gpu_power_limit=st.just(6000),
)


@examples(100)
@given(configs, st.booleans(), st.lists(observations, min_size=1, max_size=4))
def test_decisions_keep_minimum_and_budget_and_every_tick_has_a_reason(settings_, profiled, ticks):
    policy = ReferencePolicy(settings_, profile=BOTH if profiled else None)
    gpus = {Pool.PREFILL: settings_.prefill_engine_num_gpu, Pool.DECODE: settings_.decode_engine_num_gpu}
    limits = Limits(settings_)
    tick = policy.first_tick(0.0)
    for observed_then in ticks:
        observation = replace(observed_then, now=tick.at)
        effects = policy.on_tick(tick, observation)
        assert effects.next_tick.at > observation.now
        assert effects.explanation.reason in {*LoadReason, *ThroughputReason} - {"unset"}
        tick = effects.next_tick
        if effects.decision is None:
            continue
        replicas = effects.decision.replicas
        assert set(replicas) == set(limits.pools)
        total = sum(count * gpus[pool] for pool, count in replicas.items())
        least = sum(limits.least(pool) * gpus[pool] for pool in replicas)
        if settings_.max_gpu_budget >= 0:
            assert total <= settings_.max_gpu_budget
        if settings_.power_limit is not None:
            # Pools with unknown engines are not limited. A pool that grows waits until others have released their
            # power.
            able = observation.capabilities
            if set(limits.pools) <= set(able):
                assert sum(count * able[pool].watts for pool, count in replicas.items()) <= settings_.power_limit
            continue
        # A budget too small for the minimum of all pools leaves nothing; any other budget leaves the minimum.
        if not 0 <= settings_.max_gpu_budget < least:
            assert all(count >= limits.least(pool) for pool, count in replicas.items())


@examples(70)
@given(
    mode=st.sampled_from(["disagg", "prefill", "decode", "agg"]),
    isl=st.integers(1, 20_000),
    osl=st.integers(1, 5_000),
    demand=st.lists(st.integers(0, 10_000), min_size=2, max_size=5),
    budget=st.sampled_from([-1, 64]),
)
def test_more_demand_never_leads_to_fewer_replicas(mode, isl, osl, demand, budget):
    totals = []
    for count in sorted(demand):
        policy = ReferencePolicy(config(mode=mode, max_gpu_budget=budget), profile=BOTH)
        effects = throughput_tick(policy, observed(traffic=requests(count, isl=isl, osl=osl)))
        assert effects.decision is not None
        totals.append(sum(effects.decision.replicas.values()))
    if budget < 0:
        assert totals == sorted(totals)
    assert all(total >= 0 for total in totals)
