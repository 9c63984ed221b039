"""The simulation: single requests by hand, queues by what must hold, replicas by their life."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from dynamo_planner.core.decision import Decision, Effects, Tick
from dynamo_planner.core.observation import Missing, Observation, Pool
from dynamo_planner.core.profile import Profile
from dynamo_planner.replay import traces
from dynamo_planner.replay.graph import Graph
from dynamo_planner.replay.outcome import ReplayOutcome
from dynamo_planner.replay.simulator import simulate
from dynamo_planner.replay.traces import TraceRequest
from dynamo_shared.api.contracts.planner import PlannerConfig
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples

GRAPH = Graph(ttft=0.2, itl=0.02, transfer=1e-6, reports_hits=True)
ONE_POOL = replace(GRAPH, disaggregated=False, replicas={Pool.DECODE: 1}, gpus={Pool.DECODE: 1})


@dataclass
class Script:
    """A policy that does at each time what the test sets, and keeps its observations."""

    steps: dict[float, dict[Pool, int]]
    window: float = 10.0

    def __post_init__(self) -> None:
        self.observations: list[Observation] = []

    def first_tick(self, now: float) -> Tick:
        return self._tick(min(self.steps))

    def on_tick(self, tick: Tick, observation: Observation) -> Effects:
        self.observations.append(observation)
        later = [at for at in self.steps if at > tick.at]
        desired: Mapping[Pool, int] = self.steps[tick.at]
        decision = Decision(replicas=desired, reason="set") if desired else None
        return Effects(next_tick=self._tick(min(later) if later else 1e9), decision=decision)

    def _tick(self, at: float) -> Tick:
        return Tick(at=at, traffic_window=self.window, need_forward_passes=True)


def run(requests: list[TraceRequest], profile: Profile, graph: Graph = GRAPH, **options: object) -> ReplayOutcome:
    policy = options.pop("policy", None)
    return simulate(requests, graph, profile, policy, name="t", **options)  # type: ignore[arg-type]


def test_one_request_takes_the_time_of_its_phases(profile: Profile) -> None:
    (job,) = run([TraceRequest(1.0, 1000, 11)], profile).jobs
    assert job.ttft == pytest.approx(0.020 + 0.001 + 0.0051, rel=1e-3), "prompt, transfer, first token"
    assert job.itl == pytest.approx(0.0051, rel=1e-3)
    (job,) = run([TraceRequest(1.0, 1000, 11)], profile, ONE_POOL).jobs
    assert job.ttft == pytest.approx(0.020)
    assert job.itl == pytest.approx(0.0051, rel=1e-3)


def test_prompts_are_processed_in_order_and_share_iterations(profile: Profile) -> None:
    together = [TraceRequest(0.0, 4000, 2) for _ in range(3)]
    firsts = sorted(job.ttft or 0 for job in run(together, profile).jobs)
    # The first is alone, since the others come while it runs; then 8000 tokens fit one iteration, so both end at once.
    assert firsts[0] == pytest.approx(0.050 + 0.004 + 0.0051, rel=0.01)
    assert firsts[1] == pytest.approx(0.050 + 0.090 + 0.004 + 0.0052, rel=0.01)
    assert firsts[2] == pytest.approx(firsts[1] + 0.0053, rel=0.01), "which joins the tokens of its fellow"


def test_long_prompts_are_chunked(profile: Profile) -> None:
    (job,) = run([TraceRequest(0.0, 10_000, 2)], profile, replace(GRAPH, max_num_batched_tokens=4000)).jobs
    assert job.ttft == pytest.approx(2 * 0.050 + 0.030 + 0.010 + 0.0051, rel=0.01)


def test_prompts_slow_tokens_of_the_same_engine(profile: Profile) -> None:
    requests = [TraceRequest(0.0, 100, 100), TraceRequest(0.2, 8000, 2)]
    mixed, apart = run(requests, profile, ONE_POOL).jobs[0], run(requests, profile).jobs[0]
    assert (mixed.itl or 0) > (apart.itl or 0) * 1.15


def test_sequences_wait_if_the_cache_is_full(profile: Profile) -> None:
    requests = [TraceRequest(0.0, 1000, 100) for _ in range(4)]
    free = run(requests, profile)
    full = run(requests, profile, replace(GRAPH, max_kv_tokens=2500))
    assert max(job.finished or 0 for job in full.jobs) > 1.5 * max(job.finished or 0 for job in free.jobs)


def test_common_prefixes_are_cached(profile: Profile) -> None:
    blocks = tuple(range(8))
    requests = [TraceRequest(float(i), 4096, 2, blocks) for i in range(3)]
    jobs = run(requests, profile).jobs
    assert [job.cached for job in jobs] == [0, 4095, 4095]
    assert (jobs[1].ttft or 0) < (jobs[0].ttft or 0) / 2


def test_replicas_start_serve_and_drain(profile: Profile) -> None:
    policy = Script({5.0: {Pool.DECODE: 3}, 20.0: {}, 40.0: {Pool.DECODE: 1}, 60.0: {}})
    requests = traces.constant(rate=5, seconds=70, isl=1000, osl=200)
    outcome = run(requests, profile, replace(GRAPH, startup=30.0), policy=policy, until=70.0)
    counts = [each.workers[Pool.DECODE] for each in policy.observations]
    assert [(c.ready, c.starting, c.expected) for c in counts] == [(1, 0, 1), (1, 2, 3), (3, 0, 3), (1, 0, 1)]
    assert all(job.finished for job in outcome.jobs), "no one is lost when replicas go"
    taken = 2 * 70 + 2 * 35
    assert taken <= outcome.gpu_seconds < taken + 2 * 2.5, "replicas that start and drain are paid for"
    assert outcome.events == 2


def test_starting_and_youngest_replicas_are_removed_first(profile: Profile) -> None:
    policy = Script({5.0: {Pool.DECODE: 2}, 10.0: {Pool.DECODE: 1}, 100.0: {}})
    outcome = run([TraceRequest(0.0, 10, 2)], profile, replace(GRAPH, startup=60.0), policy=policy, until=120.0)
    assert policy.observations[-1].workers[Pool.DECODE].ready == 1
    assert outcome.gpu_seconds == pytest.approx(2 * 120 + 5)


def test_replicas_stay_pending_if_the_cluster_is_full(profile: Profile) -> None:
    policy = Script({1.0: {Pool.DECODE: 4}, 2.0: {}, 3.0: {Pool.PREFILL: 2, Pool.DECODE: 1}, 4.0: {}})
    run([TraceRequest(0.0, 10, 2)], profile, replace(GRAPH, cluster_gpus=3), policy=policy, until=9.0)
    _, then, _, last = (each.workers for each in policy.observations)
    assert (then[Pool.DECODE].ready, then[Pool.DECODE].pending) == (2, 2)
    assert (last[Pool.PREFILL].ready, last[Pool.DECODE].ready, last[Pool.DECODE].pending) == (2, 1, 0)


def test_requests_wait_without_replicas(profile: Profile) -> None:
    policy = Script({0.0: {Pool.PREFILL: 0}, 20.0: {Pool.PREFILL: 1}})
    outcome = run([TraceRequest(5.0, 100, 2)], profile, replace(GRAPH, startup=10.0), policy=policy, until=60.0)
    assert outcome.jobs[0].first == pytest.approx(30.0, abs=0.1)
    assert outcome.attainment() == 0.0


def test_a_policy_gets_the_observations(profile: Profile) -> None:
    policy = Script({30.0: {}, 60.0: {}, 200.0: {}})
    requests = traces.constant(rate=10, seconds=100, isl=1000, osl=50)
    outcome = run(requests, profile, policy=policy, until=200.0)
    first, second, last = (each.traffic for each in policy.observations)
    assert first is not None
    assert second is not None
    assert last is not None
    # Scrapes at 47.5 to 57.5 s: a window of 10 s is too short, so 15 s are observed, and extrapolated to their ends.
    assert second.duration == 15
    assert second.requests == pytest.approx(sum(47.5 < job.request.at <= 57.5 for job in outcome.jobs) * 15 / 10)
    assert (second.isl, second.osl, second.kv_hit_rate) == (1000, 50, 0.0)
    assert second.itl == pytest.approx(5.4, abs=0.4)
    assert (last.requests, last.isl, last.osl, last.ttft) == (0, 1000, 50, None), "no requests is a number, too"
    passes = policy.observations[1].forward_passes
    assert {forward.pool for forward in passes} == {Pool.PREFILL, Pool.DECODE}
    decode = next(forward for forward in passes if forward.pool is Pool.DECODE)
    assert decode.wall_time == pytest.approx(0.005 + 0.0001 * decode.scheduled.num_decode_requests, rel=0.01)


def test_the_traffic_is_unknown_while_it_is_in_the_service(profile: Profile) -> None:
    policy = Script({5.0: {}, 10.0: {}, 15.0: {}})
    requests = [TraceRequest(4.0, 1000, 5000)]
    run(requests, profile, policy=policy, until=15.0)
    assert [each.traffic for each in policy.observations] == [None] * 3
    young, running, _ = (each.missing["traffic"] for each in policy.observations)
    assert (young, running) == (Missing.TOO_YOUNG, Missing.NO_SERIES), (
        "one scrape, then no answer whose length is known"
    )


def test_first_tokens_count_when_they_come(profile: Profile) -> None:
    """As in the frontend's metrics: the latency of a long answer shows before its end."""
    policy = Script({20.0: {}, 50.0: {}, 60.0: {}})
    requests = [TraceRequest(8.0, 1000, 2), TraceRequest(41.0, 8000, 10_000)]
    outcome = run(requests, profile, policy=policy, until=60.0)
    assert (outcome.jobs[1].finished or 0) > 60
    _, second, last = (each.traffic for each in policy.observations)
    assert second is not None
    assert last is not None
    assert (second.isl, second.osl) == (8000, 2), "the length of an answer is known at its end"
    assert second.ttft == pytest.approx(103.1, rel=0.01)
    # Scraped from 47.5 s on: the first token came before, further ones come after.
    assert (last.requests, last.ttft) == (0, None)
    assert last.itl == pytest.approx(5.1, rel=0.01)


def test_only_routers_report_the_hit_rate(profile: Profile) -> None:
    requests = [TraceRequest(float(i), 4096, 2, tuple(range(8))) for i in range(1, 20)]
    for source, expected in (("frontend", None), ("router", 4095 / 4096)):
        config = PlannerConfig.model_validate({"throughput_metrics_source": source})
        policy = Script({20.0: {}})
        run(requests, profile, Graph.of(config), policy=policy, until=20.0)
        traffic = policy.observations[0].traffic
        assert traffic is not None
        assert traffic.kv_hit_rate == (expected and pytest.approx(expected))


def test_engines_report_while_they_drain_and_for_a_while_after(profile: Profile) -> None:
    policy = Script({5.0: {Pool.DECODE: 2}, 20.0: {Pool.DECODE: 1}, 21.0: {}, 35.0: {}, 90.0: {}})
    requests = [TraceRequest(10.0 + 0.1 * i, 1000, 4000) for i in range(4)]
    outcome = run(requests, profile, policy=policy, until=90.0)
    assert 25 < max(job.finished or 0 for job in outcome.jobs) < 35, "until then one engine drains"
    reported = [
        sum(each.pool is Pool.DECODE for each in observation.forward_passes) for observation in policy.observations
    ]
    assert reported == [1, 2, 2, 2, 1]
    assert policy.observations[2].workers[Pool.DECODE].ready == 1


def test_an_iteration_reports_the_variation_of_its_prompts(profile: Profile) -> None:
    policy = Script({0.02 * step: {} for step in range(1, 50)})
    requests = [TraceRequest(at, isl, 5) for at, isl in ((0.0, 4000), (0.001, 1000), (0.002, 3000))]
    run(requests, profile, policy=policy, until=1.0)
    observed = {
        (forward.scheduled.num_prefill_requests, forward.scheduled.var_prefill_length)
        for observation in policy.observations
        for forward in observation.forward_passes
        if forward.pool is Pool.PREFILL and forward.scheduled.num_prefill_requests
    }
    assert observed == {(1, 0.0), (2, 1000.0**2)}


def test_a_run_is_reproducible(profile: Profile) -> None:
    requests = traces.bursts(low=5, high=60, every=30, length=10, seconds=120, isl=2000, osl=50)
    one, two = run(requests, profile), run(requests, profile)
    assert [(job.ttft, job.itl) for job in one.jobs] == [(job.ttft, job.itl) for job in two.jobs]


@examples(10)
@given(
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 9000), st.integers(1, 60)), min_size=1, max_size=40),
    st.booleans(),
    st.sampled_from([512, 8192]),
)
def test_every_request_is_served_once_and_in_order(
    profile: Profile, made: list[tuple[float, int, int]], apart: bool, chunk: int
) -> None:
    requests = [TraceRequest(*values) for values in sorted(made)]
    graph = replace(GRAPH if apart else ONE_POOL, max_num_batched_tokens=chunk)
    jobs = run(requests, profile, graph).jobs
    assert [job.request for job in jobs] == requests
    for job in jobs:
        assert job.finished is not None
        assert job.first is not None
        assert job.request.at < job.first <= job.finished
        assert job.request.osl == 1 or (job.itl or 0) >= 0.005


def test_a_first_token_comes_from_a_decode_step_if_phases_alternate(profile: Profile) -> None:
    # A request for a single token has no part of a token: that one comes with its prompt.
    for apart, tokens, expected in ((False, 2, 0.020), (True, 2, 0.020 + 0.0051), (True, 1, 0.020)):
        graph = replace(ONE_POOL, one_after_another=apart)
        job = simulate([TraceRequest(0.0, 1000, tokens)], graph, profile, None, name="one").jobs[0]
        assert job.first == pytest.approx(expected)


def test_alternating_phases_take_longer_than_mixed_ones(profile: Profile) -> None:
    requests = traces.constant(rate=12, seconds=20, isl=1000, osl=60, seed=3)
    took = []
    for apart in (False, True):
        jobs = simulate(requests, replace(ONE_POOL, one_after_another=apart), profile, None, name="one").jobs
        took.append(sum(job.finished - job.request.at for job in jobs if job.finished is not None) / len(jobs))
    assert took[0] < took[1]
