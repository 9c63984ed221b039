"""What a workload's status says of it, whichever kind it is."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_pod_builder.status.workload import readiness, ready_replicas, replicas_of


def groups(wanted: int = 2, available: bool = True, **status: Any) -> dict[str, Any]:
    counts = {"replicas": wanted, "updatedReplicas": wanted, "readyReplicas": wanted, **status}
    condition = {"type": "Available", "status": "True" if available else "False"}
    return {
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "w"},
        "spec": {"replicas": wanted},
        "status": {**counts, "conditions": [condition]},
    }


@pytest.mark.parametrize(
    ("workload", "ready", "says"),
    [
        (groups(), True, "2 of 2 groups ready"),
        (groups(readyReplicas=1), False, "1 of 2 groups ready, 2 updated, 2 in all"),
        (groups(updatedReplicas=1), False, "2 of 2 groups ready, 1 updated, 2 in all"),
        (groups(replicas=3), False, "2 of 2 groups ready, 2 updated, 3 in all"),
        (groups(available=False), False, "2 of 2 groups ready, 2 updated, 2 in all"),
        (groups(0, available=False), True, "0 of 0 groups ready"),
        (None, False, "no Deployment yet"),
    ],
)
def test_groups_are_ready_when_all_of_them_serve(workload, ready, says) -> None:
    state = readiness(workload)
    assert (state.ready, state.message) == (ready, says)


def test_groups_that_are_ready_are_available() -> None:
    assert ready_replicas(groups(readyReplicas=1)) == (1, 1)
    assert ready_replicas(None) == (0, 0)
    deployment = {"kind": "Deployment", "status": {"readyReplicas": 2, "availableReplicas": 1}}
    assert ready_replicas(deployment) == (1, 2)


def test_replicas_in_a_status() -> None:
    assert replicas_of(groups()) == {
        "componentKind": "LeaderWorkerSet",
        "componentNames": ["w"],
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
    }
    assert replicas_of(None) is None
