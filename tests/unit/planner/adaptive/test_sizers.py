"""Sizes of pools: monotone in load and replicas, and close to a simulation of the same pool."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from dynamo_planner.core.adaptive.sizers import MOST, DecodeSizer, Load, PrefillSizer
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.observation import EngineCapabilities, Pool
from dynamo_planner.replay import traces
from dynamo_planner.replay.graph import Graph
from dynamo_planner.replay.simulator import simulate
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.planner.adaptive.test_policy import PROFILE

ENGINE = EngineEstimator(PROFILE)
ABLE = EngineCapabilities(max_num_batched_tokens=8192, max_num_seqs=256, max_kv_tokens=1_000_000)
DESIRED = 0.8


def prefill(rate: float, isl: float = 3000, target: float = 250, hits: float | None = None) -> PrefillSizer:
    return PrefillSizer(ENGINE, Load(rate, isl, 200, hits), target, ABLE, 15.0)


def decode(rate: float, osl: float = 200, target: float = 9.0) -> DecodeSizer:
    return DecodeSizer(ENGINE, Load(rate, 2000, osl), target, ABLE)


@examples(30)
@given(st.floats(0, 500), st.floats(0, 100), st.integers(1, 40))
def test_more_load_needs_no_fewer_replicas_and_more_replicas_serve_no_less(
    rate: float, more: float, replicas: int
) -> None:
    for sizer in (prefill, decode):
        assert sizer(rate).fewest(DESIRED) <= sizer(rate + more).fewest(DESIRED)
        assert 0 <= sizer(rate + more).share(replicas) <= sizer(rate).share(replicas) + 1e-9 <= 1 + 1e-9
        assert sizer(rate).share(replicas) <= sizer(rate).share(replicas + 1) + 1e-9


@pytest.mark.parametrize("replicas", [1, 2, 5])
def test_the_ranks_of_an_engine_compute_prompts_in_parallel(replicas: int) -> None:
    load = Load(40, 3000, 200)
    wide, narrow = (PrefillSizer(ENGINE, load, 250, ABLE, 15.0, ranks=ranks) for ranks in (4, 1))
    assert wide.capacity == 4 * narrow.capacity
    assert wide.share(replicas) == narrow.share(4 * replicas)
    rates = np.array([0.0, 10.0, 40.0, 200.0])
    assert wide.shares(rates, replicas) == pytest.approx(narrow.shares(rates, 4 * replicas)[::4])
    assert wide.fewest(DESIRED) == -(-narrow.fewest(DESIRED) // 4)


@pytest.mark.parametrize("rate", [3.0, 8.0, 20.0, 33.0, 60.0])
def test_the_smallest_sufficient_number_of_replicas(rate: float) -> None:
    for sizer in (prefill(rate), decode(rate)):
        assert sizer.reachable
        fewest = sizer.fewest(DESIRED)
        assert sizer.share(fewest) >= 0.8
        assert fewest == 1 or sizer.share(fewest - 1) < 0.8


@pytest.mark.parametrize("rate", [1e5, 1e7, 1e300])
def test_no_load_needs_more_replicas_than_are_considered(rate: float) -> None:
    for sizer in (prefill(rate), prefill(rate, target=1), decode(rate), decode(rate, target=0.1)):
        assert sizer.fewest(DESIRED) == MOST


@pytest.mark.parametrize(("replicas", "busy"), [(1, 0.4), (1, 0.7), (2, 0.6), (3, 0.7), (4, 0.8)])
def test_prefill_shares_are_close_to_simulated_ones(replicas: int, busy: float) -> None:
    rate = busy * replicas * 1000 / prefill(1).each
    graph = Graph(ttft=0.25, itl=1, transfer=2e-6, replicas={Pool.PREFILL: replicas, Pool.DECODE: 20})
    requests = traces.constant(rate=rate, seconds=400, isl=3000, osl=2, seed=7)
    simulated = simulate(requests, graph, PROFILE, None, name="t").ttft_attainment()
    assert prefill(rate).share(replicas) == pytest.approx(simulated, abs=0.08)


@pytest.mark.parametrize(("replicas", "busy"), [(1, 0.6), (2, 0.7), (4, 0.8)])
def test_prompts_of_different_lengths_wait_longer_and_lower_the_share(replicas: int, busy: float) -> None:
    short, long = 800, 5200
    variation = ((long - short) / (long + short)) ** 2
    rate = busy * replicas * 1000 / prefill(1).each
    graph = Graph(ttft=0.25, itl=1, transfer=2e-6, replicas={Pool.PREFILL: replicas, Pool.DECODE: 20})
    random = Random(7)
    requests = [
        replace(request, isl=random.choice((short, long)))
        for request in traces.constant(rate=rate, seconds=400, isl=3000, osl=2, seed=7)
    ]
    simulated = simulate(requests, graph, PROFILE, None, name="t").ttft_attainment()
    unlike = PrefillSizer(ENGINE, Load(rate, 3000, 200), 250, ABLE, 15.0, variation=variation).share(replicas)
    assert unlike == pytest.approx(simulated, abs=0.04)
    assert prefill(rate).share(replicas) > simulated + 0.04, "alike prompts would wait less"


@pytest.mark.parametrize(("replicas", "busy"), [(1, 0.7), (2, 0.8), (3, 0.9)])
def test_decode_shares_are_close_to_simulated_ones(replicas: int, busy: float) -> None:
    rate = busy * replicas * decode(1).capacity
    graph = Graph(ttft=5, itl=0.009, replicas={Pool.PREFILL: 60, Pool.DECODE: replicas})
    requests = traces.constant(rate=rate, seconds=200, isl=1900, osl=200, seed=7)
    simulated = simulate(requests, graph, PROFILE, None, name="t").itl_attainment()
    assert decode(rate).share(replicas) == pytest.approx(simulated, abs=0.12)


def test_no_load_needs_no_replica_and_cache_hits_save_replicas() -> None:
    assert prefill(0).fewest(DESIRED) == decode(0).fewest(DESIRED) == 0
    assert prefill(40, hits=0.8).fewest(DESIRED) < prefill(40).fewest(DESIRED)


def test_an_unreachable_target_is_reported_and_the_load_is_still_served() -> None:
    for sizer in (prefill(40, target=20), decode(40, target=1)):
        assert not sizer.reachable
        assert sizer.share(100) == 0
        assert sizer.fewest(DESIRED) * sizer.capacity > 40
