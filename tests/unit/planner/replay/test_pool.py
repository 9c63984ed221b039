"""A simulated pool, whose replicas are objects: their number is bounded, whatever a configuration names."""

from typing import Any

import pytest
from dynamo_planner.replay import pool
from dynamo_planner.replay.pool import ReplicaPool


def test_the_number_of_simulated_replicas_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST", 10)
    engine: Any = object()
    simulated = ReplicaPool(1, 0.0, lambda _: engine, lambda *_: None, lambda _: None, lambda _: False)
    simulated.begin(10_000_000)
    assert len(simulated.replicas) == 10
    assert simulated.scale(2**31 - 1, 0.0) is False
    assert len(simulated.replicas) == 10
