"""What planning is held against in its benchmark: an HPA on concurrency, fixed splits, recorded traffic."""

import numpy as np
import pytest
from dynamo_planner.core.decision import Effects
from dynamo_planner.core.observation import Observation, Pool, PoolCounts, Traffic

from tests.benchmarks import splits, traffic
from tests.benchmarks.hpa import STABILIZATION, ConcurrencyHpa, concurrency

BUSY = Traffic(duration=30, requests=600, isl=1000, osl=100, ttft=200, itl=10)


def check(hpa: ConcurrencyHpa, now: float, reported: Traffic, prefill: int, decode: int) -> Effects:
    workers = {
        Pool.PREFILL: PoolCounts(ready=prefill, expected=prefill),
        Pool.DECODE: PoolCounts(ready=decode, expected=decode),
    }
    return hpa.on_tick(hpa.first_tick(now - 15), Observation(now=now, traffic=reported, workers=workers))


def test_concurrency_follows_littles_law() -> None:
    assert concurrency(BUSY, Pool.PREFILL) == pytest.approx(20 * 0.2)
    assert concurrency(BUSY, Pool.DECODE) == pytest.approx(20 * 100 * 0.01)


def test_the_hpa_grows_at_once_and_shrinks_after_its_window() -> None:
    hpa = ConcurrencyHpa({Pool.PREFILL: 1.0, Pool.DECODE: 10.0}, 8)
    first = check(hpa, 15, BUSY, 1, 1).decision
    assert first is not None
    assert first.replicas == {Pool.PREFILL: 4, Pool.DECODE: 2}
    calm = Traffic(duration=30, requests=30, isl=1000, osl=100, ttft=100, itl=10)
    assert check(hpa, 30, calm, 4, 2).decision is None
    later = check(hpa, 30 + STABILIZATION + 15, calm, 4, 2).decision
    assert later is not None
    assert later.replicas == {Pool.PREFILL: 1, Pool.DECODE: 1}


def test_the_hpas_share_the_available_gpus() -> None:
    hpa = ConcurrencyHpa({Pool.PREFILL: 0.5, Pool.DECODE: 2.0}, 8)
    decision = check(hpa, 15, BUSY, 1, 1).decision
    assert decision is not None
    assert decision.replicas == {Pool.PREFILL: 4, Pool.DECODE: 4}


def test_flags_survive_storage() -> None:
    flags = np.array([True, False, True, True, False, False, True, False, True])
    reported = np.packbits(flags).tobytes().hex()
    assert splits.flags_of(reported, flags.size).tolist() == flags.tolist()


@pytest.mark.parametrize("name", list(traffic.RECORDED))
def test_a_trace_is_rebuilt_from_its_statistics(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(traffic, "TRACES", tmp_path)
    trace, made = traffic.RECORDED[name], traffic.traffic(name, 1)
    assert made.source.startswith("rebuilt")
    assert len(made.requests) == trace.copies * sum(map(int, trace.per_minute.split()))
    assert [request.at for request in made.requests] == sorted(request.at for request in made.requests)
    median = np.median([request.isl for request in made.requests])
    assert median == pytest.approx(trace.isl[2], rel=0.1)
