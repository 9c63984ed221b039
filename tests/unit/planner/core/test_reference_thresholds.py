"""Targets with fixed thresholds: cases 14 to 18 of the planner.md, section c.5."""

import pytest
from dynamo_planner.core.observation import EngineCapabilities
from dynamo_planner.core.reference import LoadReason, ReferencePolicy

from tests.unit.planner.core.reference_cases import config, decode_caches, load_tick, observed, prefill_queues

ABLE = EngineCapabilities(num_gpu=1, context_length=4096, max_kv_tokens=100_000)
RATES = {"decode_scale_up_kv_rate": 70, "decode_scale_down_kv_rate": 30}
TOKENS = {"prefill_scale_up_queue_tokens": 8000, "prefill_scale_down_queue_tokens": 1000}


def run(mode, target, passes, able=ABLE, **fields):
    policy = ReferencePolicy(config(mode=mode, optimization_target=target, max_gpu_budget=-1, **fields))
    effects = load_tick(policy, observed(passes=passes, prefill=len(passes), decode=len(passes), able=able))
    return (None if effects.decision is None else next(iter(effects.decision.replicas.values()))), effects


@pytest.mark.parametrize(
    ("target", "queues", "replicas"),
    [
        pytest.param("throughput", [4096], 2, id="case 14 full"),
        pytest.param("throughput", [2048, 2048], None, id="case 14 half"),
        pytest.param("throughput", [204, 204], 1, id="case 14 nearly empty"),
        pytest.param("throughput", [0], None, id="case 14 the last"),
        pytest.param("latency", [410], 2, id="case 15 a tenth"),
        pytest.param("latency", [0, 0], 1, id="case 15 empty"),
        pytest.param("latency", [10, 10], None, id="case 15 something"),
        pytest.param("load", [8000], 2, id="case 16 up"),
        pytest.param("load", [1000, 999], 1, id="case 16 down"),
        pytest.param("load", [1001, 0], None, id="one engine above the lower threshold"),
        pytest.param("throughput", [4096, 0, 0], 4, id="any engine is enough to grow"),
    ],
)
def test_prefill(target, queues, replicas):
    extra = TOKENS if target == "load" else {}
    assert run("prefill", target, prefill_queues(*queues), **extra)[0] == replicas


@pytest.mark.parametrize(
    ("target", "caches", "replicas"),
    [
        pytest.param("throughput", [(80_000, 30_000)], 2, id="case 17 one over"),
        pytest.param("throughput", [(40_000, 0), (40_000, 0)], 1, id="case 17 both low"),
        pytest.param("throughput", [(70_000, 0), (70_000, 0)], None, id="case 17 between"),
        pytest.param("throughput", [(50_000, 0), (110_000, 0)], 3, id="case 17 any over"),
        pytest.param("throughput", [(20_000, 0), (70_000, 0)], None, id="case 17 not all low"),
        pytest.param("throughput", [(20_000, 0), (30_000, 0), (25_000, 0)], 2, id="case 17 three low"),
        pytest.param("latency", [(45_000, 0)], 2, id="case 18 up"),
        pytest.param("latency", [(5_000, 0), (5_000, 0)], 1, id="case 18 down"),
        pytest.param("load", [(70_000, 5_000)], 2, id="case 18 rate up"),
        pytest.param("load", [(25_000, 0), (10_000, 0)], 1, id="case 18 rate down"),
    ],
)
@pytest.mark.parametrize("mode", ["decode", "agg"])
def test_decode(mode, target, caches, replicas):
    extra = RATES if target == "load" else {}
    assert run(mode, target, decode_caches(*caches), **extra)[0] == replicas


def test_waiting_prompts_count_if_one_engine_does_both():
    caches = decode_caches((80_000, 10_000, 11_000))
    assert run("decode", "throughput", caches)[0] is None
    assert run("agg", "throughput", caches)[0] == 2


@pytest.mark.parametrize(
    ("mode", "passes", "word"),
    [("prefill", prefill_queues(9000), "context_length"), ("decode", decode_caches((9, 9)), "total_kv_blocks")],
)
def test_a_card_without_a_number_is_reported_and_not_skipped(mode, passes, word):
    replicas, effects = run(mode, "throughput", passes, able=EngineCapabilities(num_gpu=1))
    assert replicas is None
    assert effects.explanation.reason == LoadReason.INSUFFICIENT_DATA
    assert word in effects.explanation.message


def test_fixed_thresholds_need_no_profile_and_predict_nothing():
    policy = ReferencePolicy(config(optimization_target="throughput", enable_throughput_scaling=True))
    tick = policy.first_tick(0.0)
    assert tick.run_load
    assert not tick.run_throughput
    assert tick.traffic_window is None
