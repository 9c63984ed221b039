"""A simulated pool, whose replicas are objects: their number is bounded, whatever a configuration names."""

from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from dynamo_planner.replay import pool
from dynamo_planner.replay.pool import ReplicaPool


def test_the_number_of_simulated_replicas_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST", 10)
    engine: Any = object()
    simulated = ReplicaPool(1, 0.0, lambda _: engine, lambda *_: None, lambda _: None, lambda: 0)
    simulated.begin(10_000_000)
    assert len(simulated.replicas) == 10
    assert simulated.scale(2**31 - 1, 0.0) is False
    assert len(simulated.replicas) == 10


def test_thousands_of_replicas_are_removed_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each of ten thousand removed replicas all others were read: a decision was simulated for ten seconds."""
    passes: list[float] = []
    reap = ReplicaPool.reap

    def counted(simulated: ReplicaPool, now: float) -> None:
        passes.append(now)
        reap(simulated, now)

    monkeypatch.setattr(ReplicaPool, "reap", counted)
    engine: Any = SimpleNamespace(idle=True)
    simulated = ReplicaPool(1, 0.0, lambda _: engine, lambda *_: None, lambda _: None, lambda: inf)
    simulated.begin(1000)
    assert simulated.scale(10, 60.0)
    assert (len(simulated.replicas), len(simulated.gone), passes) == (10, 990, [60.0])
    assert simulated.gpu_seconds(100.0) == 990 * 60.0 + 10 * 100.0


def test_free_gpus_are_counted_once_for_thousands_of_replicas() -> None:
    """Each count reads all replicas of the cluster, so a count for each of 8,000 took eleven seconds."""
    engine: Any = SimpleNamespace(idle=True)
    counts: list[int] = []

    def free() -> int:
        counts.append(2001 - simulated.gpus_taken())
        return counts[-1]

    simulated = ReplicaPool(2, 30.0, lambda _: engine, lambda *_: None, lambda _: None, free)
    simulated.begin(500)
    assert simulated.scale(2000, 60.0)
    now = simulated.counts()
    assert (now.ready, now.starting, now.pending, counts) == (500, 500, 1000, [1001])
