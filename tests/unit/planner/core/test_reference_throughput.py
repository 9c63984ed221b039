"""Predictive scaling. Case numbers are those of the planner.md, section c.5."""

from dataclasses import replace

import pytest
from dynamo_planner.core.observation import Missing, Pool, PoolCounts
from dynamo_planner.core.predictors import HISTORY
from dynamo_planner.core.reference import LoadReason, ReferencePolicy, ThroughputReason
from dynamo_planner.core.reference.engines import Engines
from dynamo_planner.core.reference.throughput import Throughput
from dynamo_planner.core.warmup import Interval

from tests.building.tables import rows
from tests.unit.planner.core.reference_cases import (
    BOTH,
    DM,
    PM,
    config,
    load_tick,
    merged_tick,
    observed,
    prefill_iteration,
    requests,
    throughput_tick,
)

P, D = Pool.PREFILL, Pool.DECODE


def test_case_3_disaggregated():
    effects = throughput_tick(ReferencePolicy(config(), profile=BOTH), observed(traffic=requests(100)))
    assert effects.decision is not None
    assert effects.decision.replicas == {P: 2, D: 3}
    assert "a prompt alone takes 1002 ms to its first token, and ttft_ms is 500" in effects.explanation.message
    assert effects.decision.reason == effects.explanation.reason == ThroughputReason.SCALE
    predictions = effects.explanation.predictions
    assert predictions["requests_per_second"] == pytest.approx(100 / 60)
    assert predictions["prefill_capacity_requests_per_second"] == pytest.approx(0.998, abs=5e-4)
    assert predictions["estimated_ttft_ms"] == pytest.approx(1002)


def test_case_4_with_reactive_scaling_the_prediction_is_a_lower_bound():
    policy = ReferencePolicy(config(enable_load_scaling=True), profile=BOTH)
    effects = throughput_tick(policy, observed(traffic=requests(100)))
    assert effects.decision is None
    assert effects.explanation.reason == ThroughputReason.SET_LOWER_BOUND
    assert effects.explanation.inputs["lower_bounds"] == {"prefill": 2, "decode": 3}


ALONE = {"mode": "prefill", "max_gpu_budget": -1}
#: The configuration, the engines, the observations, and the expected replicas.
PLANNED = {
    "case 5: a time to the first token that one engine cannot keep, nor several": (
        {"mode": "prefill", "ttft_ms": 200},
        PM,
        {"traffic": requests(1)},
        {P: 1},
    ),
    "case 6: without cache hits": (ALONE, PM, {"traffic": requests(500, isl=4000, hits=0.0)}, {P: 34}),
    "case 6: cache hits need fewer replicas": (ALONE, PM, {"traffic": requests(500, isl=4000, hits=0.8)}, {P: 7}),
    "a single decode pool": ({"mode": "decode"}, DM, {"traffic": requests(100)}, {D: 3}),
    "one pool for both stands in the place of decode": (
        {"mode": "agg", "ttft_ms": 4000, "itl_ms": 3000},
        BOTH,
        {"traffic": requests(20)},
        {D: 1},
    ),
    "a graph that no one used yet has its minimum": (
        {"min_endpoint": 2},
        BOTH,
        {"traffic": requests(0, isl=0, osl=0)},
        {P: 2, D: 2},
    ),
    "the budget is kept": ({"max_gpu_budget": 4}, BOTH, {"traffic": requests(100)}, {P: 1, D: 3}),
    "each pool may have a minimum of its own": (
        {"ttft_ms": 2000, "prefill_min_endpoint": 2, "decode_min_endpoint": 3},
        BOTH,
        {"traffic": requests(1)},
        {P: 2, D: 3},
    ),
    "steps are limited where the configuration asks for it": (
        {**ALONE, "max_throughput_scaling_replicas": 4},
        PM,
        {"traffic": requests(500, isl=4000), "prefill": 2},
        {P: 6},
    ),
}


@rows("fields, profile, given, replicas", PLANNED)
def test_replicas_of_one_interval(fields, profile, given, replicas):
    effects = throughput_tick(ReferencePolicy(config(**fields), profile=profile), observed(**given))
    assert effects.decision is not None
    assert effects.decision.replicas == replicas


@pytest.mark.parametrize("predictor", ["constant", "kalman"])
def test_predictors_learn_only_the_end_of_a_long_trace(predictor: str) -> None:
    made = config(load_predictor=predictor)
    trace = [Interval(requests=100 + 50 * (i % 7), isl=1000, osl=150) for i in range(5 * HISTORY)]
    long, short = (Throughput(made, Engines(made, BOTH), warmup=each) for each in (trace, trace[-HISTORY:]))
    assert long._requests.steps == long._isl.steps == HISTORY
    assert long.plan(requests(100), {}).predictions == short.plan(requests(100), {}).predictions


@pytest.mark.parametrize(("profile", "ready"), [(PM, P), (DM, D)])
def test_a_single_known_model_decides_nothing(profile, ready):
    effects = throughput_tick(ReferencePolicy(config(), profile=profile), observed(traffic=requests(100)))
    assert effects.decision is None
    assert effects.explanation.reason == ThroughputReason.MODEL_NOT_READY
    partner = {P: D, D: P}[ready]
    assert effects.explanation.inputs["throughput"] == {
        ready.value: ThroughputReason.PARTNER_NOT_READY,
        partner.value: ThroughputReason.MODEL_NOT_READY,
    }
    assert f"{partner} engines" in effects.explanation.message


def test_missing_traffic_is_not_zero_demand():
    policy = ReferencePolicy(config(), profile=BOTH)
    throughput_tick(policy, observed(traffic=requests(100)))
    blind = replace(observed(120.0, prefill=3, decode=3), missing={"traffic": Missing.UNREACHABLE})
    effects = throughput_tick(policy, blind)
    assert effects.decision is None
    assert effects.explanation.reason == ThroughputReason.NO_TRAFFIC_DATA
    assert effects.explanation.inputs["missing"] == {"traffic": "unreachable"}


def test_a_pool_gets_its_minimum_while_metrics_are_missing():
    policy = ReferencePolicy(config(min_endpoint=2, max_gpu_budget=8), profile=BOTH)
    blind = replace(observed(prefill=1, decode=3), missing={"traffic": Missing.UNREACHABLE})
    effects = throughput_tick(policy, blind)
    assert effects.decision is not None
    assert (effects.decision.replicas, effects.decision.reason) == ({P: 2, D: 3}, "scale_up")
    assert effects.explanation.reason == ThroughputReason.NO_TRAFFIC_DATA
    assert load_tick(policy, observed(120.0, prefill=2, decode=3)).decision is None


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"workers": {}}, id="unknown"),
        pytest.param({"workers": {P: PoolCounts(ready=1), D: PoolCounts(ready=1)}}, id="in the middle of a change"),
        pytest.param({"workers": {P: PoolCounts(ready=0, expected=2), D: PoolCounts(ready=0, expected=2)}}, id="asked"),
        pytest.param({"workers": {P: PoolCounts(ready=1, expected=1), D: PoolCounts(ready=9, expected=9)}}, id="full"),
    ],
)
def test_no_replicas_are_requested_twice_or_beyond_the_budget(changes):
    policy = ReferencePolicy(config(min_endpoint=2, max_gpu_budget=10), profile=BOTH)
    assert throughput_tick(policy, replace(observed(), **changes)).decision is None


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, 1e300])
def test_invalid_numbers_do_not_count_as_traffic(number):
    effects = throughput_tick(ReferencePolicy(config(), profile=BOTH), observed(traffic=requests(number)))
    assert effects.explanation.reason == ThroughputReason.NO_TRAFFIC_DATA


def test_zero_requests_count_as_traffic():
    policy = ReferencePolicy(config(ttft_ms=2000), profile=BOTH)
    throughput_tick(policy, observed(traffic=requests(100)))
    effects = throughput_tick(policy, observed(120.0, traffic=requests(0)))
    assert effects.decision is not None
    assert effects.decision.replicas == {P: 1, D: 1}


def test_the_lower_bound_raises_replicas_at_the_same_tick():
    policy = ReferencePolicy(config(enable_load_scaling=True), profile=BOTH)
    passes = tuple(
        replace(each, worker_id="w")
        for each in (prefill_iteration(1000, 0.0), replace(prefill_iteration(0, 0.0), pool=D))
    )
    effects = merged_tick(policy, observed(traffic=requests(100), passes=passes))
    assert effects.decision is not None
    assert effects.decision.replicas == {P: 2, D: 3}
    assert effects.decision.reason == LoadReason.SCALE_UP


def test_reactive_scaling_decides_at_a_tick_of_both():
    policy = ReferencePolicy(config(enable_load_scaling=True), profile=BOTH)
    effects = merged_tick(policy, observed(traffic=requests(100)))
    assert effects.decision is None
    assert effects.explanation.reason == LoadReason.NO_FPM_DATA
    assert effects.explanation.inputs["throughput"] == dict.fromkeys(("prefill", "decode"), "set_lower_bound")


def test_idle_time_after_a_warm_up_trace_is_skipped():
    warmup = [Interval(requests=90, isl=1000, osl=150)] * 3
    policy = ReferencePolicy(config(mode="prefill", ttft_ms=2000, max_gpu_budget=-1), profile=PM, warmup=warmup)
    # Idle time after the deployment does not predict the load, but the trace does.
    effects = throughput_tick(policy, observed(traffic=requests(0)))
    assert effects.explanation.predictions["requests_per_second"] == pytest.approx(1.5)
    effects = throughput_tick(policy, observed(120.0, traffic=requests(30)))
    assert effects.explanation.predictions["requests_per_second"] == pytest.approx(0.5)


def test_advisory_decisions_are_marked():
    effects = throughput_tick(ReferencePolicy(config(advisory=True), profile=BOTH), observed(traffic=requests(100)))
    assert effects.decision is not None
    assert effects.explanation.inputs["advisory"] is True


def test_predictions_need_no_counts_of_workers():
    observation = replace(observed(traffic=requests(100)), workers={P: PoolCounts(ready=0)})
    effects = throughput_tick(ReferencePolicy(config(), profile=BOTH), observation)
    assert effects.decision is not None


def test_a_widened_window_continues_the_intervals_of_the_warm_up_trace():
    """An interval of 10 s is observed over 20 s: the rate does not grow."""
    ten = config(throughput_adjustment_interval_seconds=10)
    throughput = Throughput(ten, Engines(ten, BOTH), warmup=[Interval(requests=100, isl=1000, osl=100)] * 20)
    plan = throughput.plan(requests(200, duration=20), {})
    assert set(throughput._requests.values) == {100}
    assert plan.predictions["requests_per_second"] == 10
