"""Which component deployments a rolling update moves: old generations of workers, those from before hashes among them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.rolling import roll
from dynamo_shared.api.registry import labels

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def component(name: str, hash_: str | None, replicas: int = 1, component: str = "Worker") -> dict[str, Any]:
    marks = {labels.COMPONENT: component, **({labels.WORKER_HASH: hash_} if hash_ else {})}
    return {
        "kind": "DynamoComponentDeployment",
        "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": marks},
        "spec": {"replicas": replicas},
    }


def serving(dcd: dict[str, Any]) -> dict[str, Any]:
    replicas = dcd["spec"]["replicas"]
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas", "readyReplicas"), replicas)
    return {"kind": "Deployment", "metadata": {}, "spec": {"replicas": replicas}, "status": counts}


NEW = component("g-worker-new", "new")
FRONT = component("g-front", None, component="Front")


@pytest.mark.parametrize("old", [component("g-worker-old", "old"), component("g-worker", None)])
def test_an_old_generation_serves_until_the_new_one_does(old):
    first = roll({}, [FRONT, NEW], [FRONT, old], serving, NOW)
    assert first.started
    assert list(first.kept) == [old["metadata"]["uid"]]
    assert first.components == ["Worker"]
    done = roll(
        {"status": {"rollingUpdate": first.status}},
        [FRONT, NEW],
        [FRONT, NEW, {**old, "spec": {"replicas": 0}}],
        serving,
        NOW,
    )
    assert done.completed
    assert not done.kept


def test_what_is_no_worker_is_not_kept():
    gone = component("g-gone", None, component="Gone")
    assert not roll({}, [FRONT, NEW], [FRONT, NEW, gone], serving, NOW).kept
