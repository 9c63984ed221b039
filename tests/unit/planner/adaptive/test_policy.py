"""The policy's decisions for its observations, and above all when it decides nothing."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from dynamo_planner.core.adaptive import AdaptivePolicy
from dynamo_planner.core.adaptive.demand import Demand
from dynamo_planner.core.adaptive.reasons import Reason
from dynamo_planner.core.decision import Effects
from dynamo_planner.core.observation import (
    EngineCapabilities,
    EngineWork,
    ForwardPass,
    Missing,
    Observation,
    PastTraffic,
    Pool,
    PoolCounts,
    Traffic,
)
from dynamo_planner.core.profile import DecodePoint, PrefillPoint, Profile
from dynamo_shared.api.contracts.planner import PlannerConfig

PROFILE = Profile(
    prefill=tuple(PrefillPoint(isl=isl, ttft=10 + isl / 50) for isl in (100, 1000, 2000, 4000, 8000, 16000)),
    decode=tuple(
        DecodePoint(context=context, kv_tokens=batch * context, itl=5 + 0.1 * batch)
        for context in (500.0, 2000.0, 8000.0)
        for batch in (1, 10, 50, 100)
    ),
    max_kv_tokens=1_000_000,
)
ABLE = EngineCapabilities(num_gpu=1, max_num_batched_tokens=8192, max_num_seqs=256, max_kv_tokens=1_000_000)


def config(**changes: Any) -> PlannerConfig:
    fields = {
        "mode": "disagg",
        "optimization_target": "sla",
        "ttft_ms": 250,
        "itl_ms": 10,
        "throughput_adjustment_interval_seconds": 60,
        "max_gpu_budget": 20,
    }
    return PlannerConfig.model_validate(fields | changes)


class Follower:
    """A graph whose replicas start at once, with given traffic."""

    def __init__(self, policy: AdaptivePolicy, replicas: dict[Pool, int], startup: float = 30.0) -> None:
        self.policy, self.replicas, self.startup = policy, dict(replicas), startup
        self.tick = policy.first_tick(0.0)
        self.changes = 0

    def step(self, rate: float | None, **changes: Any) -> Effects:
        now, window = self.tick.at, self.tick.traffic_window or 0.0
        observation = Observation(
            now=now,
            traffic=None if rate is None else Traffic(duration=window, requests=rate * window, isl=3000, osl=200),
            workers={pool: PoolCounts(ready=count, expected=count) for pool, count in self.replicas.items()},
            capabilities=dict.fromkeys(self.replicas, ABLE),
            startup_seconds=dict.fromkeys(self.replicas, self.startup),
            missing={} if rate is not None else {"traffic": Missing.UNREACHABLE},
        )
        effects = self.policy.on_tick(self.tick, replace(observation, **changes))
        self.tick = effects.next_tick
        if effects.decision is not None:
            self.changes += 1
            self.replicas |= effects.decision.replicas
        return effects

    def run(self, rate: float | None, seconds: float) -> Effects:
        until = self.tick.at + seconds
        effects = self.step(rate)
        while self.tick.at < until:
            effects = self.step(rate)
        return effects


BOTH = {Pool.PREFILL: 1, Pool.DECODE: 1}


def reason(effects: Effects) -> str:
    return effects.explanation.reason


@cache
def _begun(rate: float, seconds: float) -> Follower:
    """A graph after that many seconds of a rate; copied, because simulating costs milliseconds a tick."""
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), BOTH)
    if seconds:
        graph.run(rate, seconds)
    return graph


@pytest.fixture
def graph() -> Follower:
    """A new graph without observed traffic."""
    return deepcopy(_begun(0, 0))


@pytest.fixture
def busy() -> Follower:
    """After five minutes of 40 requests/s."""
    return deepcopy(_begun(40, 300))


@pytest.fixture
def settled() -> Follower:
    """After eight start-up times and samples of 20 requests/s, while a first burst is still expected."""
    return deepcopy(_begun(20, 400))


def test_replicas_grow_with_the_load_and_shrink_to_what_is_enough(graph: Follower) -> None:
    graph.run(40, 120)
    grown = dict(graph.replicas)
    assert grown[Pool.PREFILL] >= 3, "40 prompts of 65 ms each second"
    assert grown[Pool.DECODE] >= 1
    graph.run(8, 600)
    assert graph.replicas[Pool.PREFILL] < grown[Pool.PREFILL]


def test_steady_load_changes_nothing(settled: Follower) -> None:
    before, settled.changes = dict(settled.replicas), 0
    settled.run(20, 600)
    assert settled.changes == 0
    assert settled.replicas == before


def test_noise_between_two_sizes_changes_little(settled: Follower) -> None:
    settled.changes = 0
    for index in range(90):
        settled.step(20 + (2 if index % 2 else -2))
    assert settled.changes == 0, "a quarter of an hour"


@pytest.mark.parametrize(("late", "apart"), [(0.0, 10.0), (4.0, 6.0), (10.0, 10.0), (95.0, 10.0)])
def test_the_traffic_of_a_sample_counts_once_however_late_it_is_read(
    graph: Follower, late: float, apart: float
) -> None:
    at = graph.tick.at + late
    effects = graph.step(20, now=at)
    assert effects.next_tick.at - at == apart


def test_no_traffic_ends_at_the_minimum_within_two_intervals(busy: Follower) -> None:
    busy.run(0, 120)
    assert busy.replicas == BOTH
    own = Follower(AdaptivePolicy(config(min_endpoint=2, decode_min_endpoint=0), profile=PROFILE), BOTH)
    own.run(40, 300)
    assert reason(own.run(0, 120)) == Reason.IDLE
    assert own.replicas == {Pool.PREFILL: 2, Pool.DECODE: 0}


def test_replicas_are_held_through_a_pause_if_requests_returned_after_the_last_one(busy: Follower) -> None:
    assert reason(busy.run(0, 110)) == Reason.IDLE, "nothing is known of pauses"
    busy.run(40, 100)
    assert reason(busy.run(0, 110)) != Reason.IDLE
    assert sum(busy.replicas.values()) > sum(BOTH.values())
    assert reason(busy.run(0, 400)) == Reason.IDLE
    assert busy.replicas == BOTH, "not without end"


def test_a_new_graph_is_held_through_a_pause_as_long_as_its_first_burst_is_expected(graph: Follower) -> None:
    graph.run(40, 60)
    assert reason(graph.run(0, 120)) != Reason.IDLE, "320 s from the first request, less 60 s, are more than the pause"
    assert sum(graph.replicas.values()) > sum(BOTH.values())
    assert reason(graph.run(0, 30)) == Reason.IDLE
    assert graph.replicas == BOTH


@pytest.mark.parametrize(("ttft", "price", "reserve"), [(900, None, True), (90, None, False), (900, 0.5, False)])
def test_a_graph_that_misses_higher_and_higher_bursts_is_ready_for_the_next(
    ttft: float, price: float | None, reserve: bool
) -> None:
    graph = Follower(AdaptivePolicy(config(gpu_price=price), profile=PROFILE), BOTH, startup=60)
    for rate in (10, 0, 20, 0, 30, 0):
        for _ in range(12):
            traffic = Traffic(duration=10, requests=10 * rate, isl=3000, osl=200, ttft=ttft if rate else None)
            message = graph.step(rate, traffic=traffic).explanation.message
    assert ("for up to 60.0 requests/s" in message) is reserve


def test_a_graph_without_any_request_goes_to_its_minimum() -> None:
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), {Pool.PREFILL: 3, Pool.DECODE: 3})
    assert reason(graph.step(0)) == Reason.NO_TRAFFIC_YET
    graph.run(0, 120)
    assert graph.replicas == BOTH


@pytest.mark.parametrize("why", list(Missing))
def test_missing_metrics_never_count_as_no_demand(settled: Follower, why: Missing) -> None:
    before = dict(settled.replicas)
    assert before != BOTH
    for _ in range(100):
        effects = settled.step(None, missing={"traffic": why})
        assert effects.decision is None
        assert reason(effects) == Reason.HOLD_MISSING
        assert why.value in effects.explanation.message
    assert settled.replicas == before
    settled.run(20, 60)
    assert settled.replicas == before


@pytest.mark.parametrize("startup", [961.5, 965.0, 1003.0, 4094.5])
def test_starts_of_a_quarter_of_an_hour_are_planned_for(startup: float) -> None:
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), BOTH, startup=startup)
    explanation = graph.run(40, 60).explanation
    assert sum(graph.replicas.values()) > sum(BOTH.values())
    highest = max(float(each.get("requests_per_second_in_time", 0)) for each in explanation.alternatives)
    assert 0 < highest <= (40 + 40 + 3 * 40) / 3, "of three rates that may come, one is a burst"


def test_each_pool_gets_its_minimum_while_metrics_are_missing() -> None:
    policy = AdaptivePolicy(config(prefill_min_endpoint=2), profile=PROFILE)
    graph = Follower(policy, {Pool.PREFILL: 1, Pool.DECODE: 3})
    effects = graph.step(None)
    assert effects.decision is not None
    assert effects.decision.replicas == {Pool.PREFILL: 2, Pool.DECODE: 3}
    assert reason(effects) == Reason.HOLD_MISSING
    assert effects.explanation.message.endswith("replicas do not change; pools below their minimum are raised to it")
    assert graph.step(None).decision is None


def test_a_rarely_scraped_source_is_queried_with_longer_windows(graph: Follower) -> None:
    assert graph.tick.traffic_window == 10
    windows = []
    for _ in range(5):
        graph.step(None, missing={"traffic": Missing.TOO_YOUNG})
        windows.append(graph.tick.traffic_window)
    assert windows == [20, 40, 60, 60, 60]


@pytest.mark.parametrize("least", [10, 11, 30])
def test_a_pool_far_below_its_minimum_goes_to_it(least: int) -> None:
    graph = Follower(AdaptivePolicy(config(min_endpoint=least, max_gpu_budget=-1), profile=PROFILE), BOTH)
    assert reason(graph.step(0.1)) == Reason.SCALE_UP
    assert set(graph.replicas.values()) == {least}


@cache
def prefill_of_ranks(ranks: int, *, described: bool = False) -> int:
    """The planned prefill replicas if each engine reports that many ranks; `described`: the configuration says four."""
    engines = {"hf_id": "m", "system": "h200_sxm", "backend": "vllm", "isl": 3000, "osl": 200}
    engines |= {"sweep_max_context_length": 8192, "prefill_pick": {"dp": 4}}
    fields = {"aic_interpolation": engines} if described else {}
    graph = Follower(AdaptivePolicy(config(**fields), profile=PROFILE), BOTH)
    passes = tuple(
        ForwardPass(pool=Pool.PREFILL, worker_id=worker, dp_rank=rank) for worker in "ab" for rank in range(ranks)
    )
    for _ in range(10):
        graph.step(25, forward_passes=passes)
    return graph.replicas[Pool.PREFILL]


def test_engines_of_several_ranks_compute_as_many_prompts_at_once() -> None:
    one = prefill_of_ranks(1)
    assert prefill_of_ranks(0) == one
    assert prefill_of_ranks(4) < one
    assert prefill_of_ranks(0, described=True) == prefill_of_ranks(4)


@pytest.mark.parametrize("mode", ["disagg", "agg"])
def test_the_limits_of_a_model_card_apply_to_one_rank(mode: str) -> None:
    """Concurrent sequences, and tokens in the KV cache: an engine has these once for each of its ranks."""
    few = replace(ABLE, max_num_seqs=8, max_kv_tokens=30_000)
    planned = []
    for ranks in (0, 1, 4):
        least = dict.fromkeys(BOTH if mode == "disagg" else [Pool.DECODE], 1)
        graph = Follower(AdaptivePolicy(config(mode=mode, ttft_ms=2000, itl_ms=50), profile=PROFILE), least)
        passes = tuple(ForwardPass(pool=Pool.DECODE, worker_id="a", dp_rank=rank) for rank in range(ranks))
        for _ in range(10):
            graph.step(20, capabilities=dict.fromkeys(least, few), forward_passes=passes)
        planned.append(graph.replicas[Pool.DECODE])
    assert planned[0] == planned[1] > planned[2]


def answered(graph: Follower, needs: float, seconds: float) -> int:
    """The ticks without an answer from a source that needs a window of that length."""
    held, until = 0, graph.tick.at + seconds
    while graph.tick.at < until:
        known = (graph.tick.traffic_window or 0) >= needs
        effects = graph.step(20 if known else None, missing={} if known else {"traffic": Missing.TOO_YOUNG})
        held += reason(effects) == Reason.HOLD_MISSING
    return held


def test_a_working_window_is_kept_and_a_shorter_one_tried_now_and_then() -> None:
    # Nothing is known about its engines, so that ticks cost nothing: the window is chosen before that matters.
    graph = Follower(AdaptivePolicy(config()), BOTH)
    assert answered(graph, 40, 1800) == 2 + 2
    assert answered(graph, 10, 1200) == 0
    assert graph.tick.traffic_window == 10


@pytest.mark.parametrize("why", [Missing.UNREACHABLE, Missing.STALE, Missing.NO_SERIES])
def test_a_longer_window_is_tried_only_for_lack_of_samples(graph: Follower, why: Missing) -> None:
    graph.step(None, missing={"traffic": why})
    assert graph.tick.traffic_window == 10


def test_invalid_numbers_and_unknown_workers_hold(graph: Follower) -> None:
    graph.run(40, 100)
    nonsense = Traffic(duration=10, requests=float("nan"), isl=3000, osl=200)
    assert graph.step(1, traffic=nonsense).decision is None
    effects = graph.step(1, workers={})
    assert (effects.decision, reason(effects)) == (None, Reason.HOLD_MISSING)


def test_requests_that_did_not_end_yet_are_not_no_requests(busy: Follower) -> None:
    """Routers until Dynamo 1.5 count only ended requests: with requests of minutes, pools shrank to their minimum."""
    before = dict(busy.replicas)
    none = Traffic(duration=10, requests=0, isl=3000, osl=200, ended=True)
    works = ForwardPass(pool=Pool.DECODE, worker_id="a", wall_time=0.01, scheduled=EngineWork(num_decode_requests=9))
    for _ in range(30):
        effects = busy.step(0, traffic=none, forward_passes=(works,))
        assert reason(effects) == Reason.HOLD_CONTRADICTION
    assert busy.replicas == before
    for _ in range(30):
        effects = busy.step(0, traffic=none, forward_passes=(replace(works, wall_time=0.0),))
    assert (reason(effects), sum(busy.replicas.values())) == (Reason.IDLE, 2)


def test_working_engines_without_reported_requests_hold(busy: Follower) -> None:
    before = dict(busy.replicas)
    waits = ForwardPass(
        pool=Pool.PREFILL, worker_id="a", queued=EngineWork(num_prefill_requests=3, sum_prefill_tokens=9000)
    )
    for _ in range(30):
        effects = busy.step(0, forward_passes=(waits,))
        assert reason(effects) == Reason.HOLD_CONTRADICTION
    assert busy.replicas == before


def test_starting_replicas_count_and_pending_ones_stop_growth(graph: Follower) -> None:
    asked = {Pool.PREFILL: PoolCounts(ready=1, expected=8, starting=7), Pool.DECODE: PoolCounts(ready=1, expected=8)}
    for _ in range(12):
        effects = graph.step(40, workers=asked)
        assert effects.decision is None or all(count <= 8 for count in effects.decision.replicas.values())
    full = {pool: PoolCounts(ready=1, expected=3, pending=2) for pool in BOTH}
    effects = graph.step(60, workers=full)
    assert (effects.decision, reason(effects)) == (None, Reason.HOLD_PENDING)


def test_steps_and_the_budget_limit_changes() -> None:
    graph = Follower(AdaptivePolicy(config(max_throughput_scaling_replicas=2), profile=PROFILE), BOTH)
    graph.step(100)
    assert max(graph.replicas.values()) <= 3
    tight = Follower(AdaptivePolicy(config(max_gpu_budget=5), profile=PROFILE), BOTH)
    effects = tight.run(100, 300)
    assert sum(tight.replicas.values()) <= 5
    assert reason(effects) == Reason.HOLD_BUDGET


@pytest.mark.parametrize(("budget", "rate", "moved"), [(6, 60, 0), (5, 200, 1)])
def test_with_a_full_budget_a_replica_moves_to_the_pool_where_it_is_better_for_a_whole_start(
    budget: int, rate: float, moved: int
) -> None:
    tight = Follower(AdaptivePolicy(config(max_gpu_budget=budget), profile=PROFILE), BOTH)
    tight.run(20, 400)
    moves = [reason(tight.step(each)) == Reason.REBALANCE for each in (rate, 20, *[rate] * 4)]
    assert moves[:5] == [False] * 5, "a sample alone, and three that are not yet a start-up time apart"
    assert sum(moves[5:]) >= moved
    assert sum(tight.replicas.values()) == budget


def test_if_only_the_reserve_exceeds_the_budget_prefill_gets_as_many_as_decode_can_follow() -> None:
    policies = (AdaptivePolicy(config(ttft_ms=1000, max_gpu_budget=most), profile=PROFILE) for most in (7, 20))
    tight, free = (Follower(policy, {Pool.PREFILL: 3, Pool.DECODE: 1}, startup=60) for policy in policies)
    for graph in (tight, free):
        graph.step(8, traffic=Traffic(duration=10, requests=80, isl=13_000, osl=190))
    assert free.replicas == {Pool.PREFILL: 8, Pool.DECODE: 2}
    assert tight.replicas == {Pool.PREFILL: 6, Pool.DECODE: 1}, "not 5 and 2, in proportion"


def test_waiting_prompts_need_more_than_the_rate_does() -> None:
    calm, queued = (Follower(AdaptivePolicy(config(), profile=PROFILE), BOTH, startup=0.0) for _ in range(2))
    calm.run(10, 200)
    queued.run(10, 200)
    waits = ForwardPass(
        pool=Pool.PREFILL, worker_id="a", queued=EngineWork(num_prefill_requests=400, sum_prefill_tokens=1_200_000)
    )
    queued.step(10, forward_passes=(waits,))
    assert queued.replicas[Pool.PREFILL] > calm.replicas[Pool.PREFILL]


def test_a_longer_start_is_planned_further_ahead() -> None:
    grown = []
    for startup in (0.0, 180.0):
        graph = Follower(AdaptivePolicy(config(), profile=PROFILE), BOTH, startup=startup)
        steps = 0
        while graph.replicas[Pool.PREFILL] < 4:
            graph.step(5 + 2 * steps)
            steps += 1
        grown.append(steps)
    assert grown[1] < grown[0]


@pytest.mark.parametrize(("mode", "pool"), [("prefill", Pool.PREFILL), ("decode", Pool.DECODE), ("agg", Pool.DECODE)])
def test_modes_of_one_pool(mode: str, pool: Pool) -> None:
    graph = Follower(AdaptivePolicy(config(mode=mode, itl_ms=60, ttft_ms=1000), profile=PROFILE), {pool: 1})
    graph.run(60, 200)
    assert graph.replicas[pool] > 1
    graph.run(0, 120)
    assert graph.replicas == {pool: 1}


def test_it_holds_without_any_knowledge_of_engines() -> None:
    graph = Follower(AdaptivePolicy(config()), BOTH)
    effects = graph.run(40, 100)
    assert reason(effects) == Reason.HOLD_NOT_READY
    assert "prefill and decode engines" in effects.explanation.message
    assert effects.explanation.needs_passes
    assert graph.replicas == BOTH


@pytest.mark.parametrize(("changes", "replicas"), [({}, {Pool.PREFILL: 5000}), ({"min_endpoint": 1001}, {})])
def test_pools_that_are_too_large_to_be_compared_hold(changes: dict[str, int], replicas: dict[Pool, int]) -> None:
    graph = Follower(AdaptivePolicy(config(**changes), profile=PROFILE), BOTH | replicas)
    effects = graph.run(40, 100)
    assert reason(effects) == Reason.HOLD_TOO_MANY
    assert "exceed 1000" in effects.explanation.message
    assert graph.changes == 0


def test_a_decision_reports_its_inputs(graph: Follower) -> None:
    # Known for long, so that no replica is a reserve for a first burst.
    minute = Traffic(duration=60, requests=60 * 40, isl=3000, osl=200)
    effects = graph.step(40, past=tuple(PastTraffic(ago=60.0 * ago, traffic=minute) for ago in range(20, -1, -1)))
    while effects.decision is None:
        effects = graph.step(40)
    explanation = effects.explanation
    assert explanation.message.startswith("scale_up: prefill 1 -> ")
    assert explanation.predictions["requests_per_second"] == pytest.approx(40, rel=0.2)
    assert {"isl", "osl", "estimated_ttft_ms", "estimated_itl_ms", "horizon_seconds"} <= explanation.predictions.keys()
    assert explanation.inputs["traffic"]["requests"] == 400
    assert explanation.inputs["startup_seconds"] == {"prefill": 30.0, "decode": 30.0}
    fewer = next(o for o in explanation.alternatives if o["pool"] == "prefill")
    assert fewer["replicas"] == effects.decision.replicas[Pool.PREFILL] - 1
    assert fewer["share_within_target"] < explanation.predictions["prefill_share_within_target"]
    assert "would miss" in fewer["not_taken"]


def test_cheaper_gpus_lead_to_more_of_them() -> None:
    sizes = []
    for price in (0.05, 1.0):
        graph = Follower(AdaptivePolicy(config(gpu_price=price), profile=PROFILE), BOTH)
        graph.run(37, 100)
        sizes.append(sum(graph.replicas.values()))
    assert sizes[0] > sizes[1]


def test_replicas_stay_from_burst_to_burst() -> None:
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), BOTH, startup=120.0)
    for gap in (300, 170, 400):
        graph.run(40, 100)
        calm = graph.run(8, gap)
    assert graph.replicas[Pool.PREFILL] >= 3, "as 40 prompts of 65 ms each second need"
    assert calm.explanation.predictions["hold_seconds"] >= 300


def test_a_starting_replica_is_not_removed_before_it_is_ready() -> None:
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), BOTH, startup=120.0)
    graph.run(8, 60)
    while graph.replicas == BOTH:
        graph.run(40, 10)
    grown = dict(graph.replicas)
    graph.run(2, 60)
    assert all(graph.replicas[pool] >= count for pool, count in grown.items())


def test_replicas_that_may_go_soon_after_each_other_go_together() -> None:
    graph = deepcopy(_begun(40, 700))
    before, graph.changes = dict(graph.replicas), 0
    for step in range(30):
        graph.step(max(2, 40 - 4 * step))
    assert before == {Pool.PREFILL: 4, Pool.DECODE: 2}
    assert (graph.replicas, graph.changes) == (BOTH, 1), "two numbers of replicas that are ten seconds apart"


def test_lengths_are_means_over_requests_so_the_first_few_are_soon_outweighed() -> None:
    demand = Demand()
    demand.observe(10.0, Traffic(duration=10, requests=20, isl=100, osl=10))
    for tick in range(2, 8):
        demand.observe(10.0 * tick, Traffic(duration=10, requests=200, isl=1000, osl=200))
    assert demand.isl == pytest.approx(1000, rel=0.05)
    assert demand.osl == pytest.approx(200, rel=0.05)
    demand.observe(80.0, Traffic(duration=10, requests=2, isl=9000, osl=900))
    assert demand.osl == pytest.approx(200, rel=0.05), "few requests say little"
