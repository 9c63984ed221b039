"""The status of a model."""

from datetime import UTC, datetime
from typing import Any

import pytest
from dynamo_model_discovery.models.status import (
    ModelReadiness,
    adapter_verdict,
    base_verdict,
    status_of,
    unloading_verdict,
)
from dynamo_model_discovery.models.workers import Worker, WorkerSet

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MODEL: dict[str, Any] = {"metadata": {"name": "m", "namespace": "prod", "generation": 4}, "spec": {}}


def worker_set(ready: int, *absent: tuple[str, str]) -> WorkerSet:
    made = tuple(Worker(f"pod-{number}", f"uid-{number}", f"http://10.0.0.{number}:9090") for number in range(ready))
    return WorkerSet(made, ("dynamo-model-1",), absent)


def test_a_base_model_is_served_by_its_ready_workers():
    verdict = base_verdict(worker_set(2), "base")
    assert verdict == ModelReadiness(True, "EndpointsDiscovered", "2 workers serve 'base'")
    assert base_verdict(worker_set(1), "base").message == "1 worker serves 'base'"


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (worker_set(0, ("x", "it is not ready")), "no worker serves 'base'; not among them: x (it is not ready)"),
        (
            worker_set(0),
            "no worker serves 'base': no pod of this namespace belongs to a component with modelRef.name 'base'",
        ),
    ],
)
def test_a_model_without_ready_workers(there: WorkerSet, message: str):
    for verdict in (base_verdict(there, "base"), adapter_verdict(there, "base", (), {})):
        assert verdict == ModelReadiness(False, "NoEndpoints", message)


def test_an_adapter_is_served_when_all_workers_have_it():
    there = worker_set(2)
    assert adapter_verdict(there, "base", there.ready, {}).reason == "AllEndpointsReady"
    verdict = adapter_verdict(there, "base", there.ready[:1], {"pod-1": "HTTP 500: no"})
    assert verdict.reason == "NotReady"
    assert verdict.message == "1 of 2 workers have the adapter loaded; 1 failing: pod-1: HTTP 500: no"
    assert adapter_verdict(worker_set(1), "base", (), {}).message == "0 of 1 worker has the adapter loaded"


def test_messages_stay_short_however_many_workers_fail():
    failures = {f"pod-{number:04}": "HTTP 500: no" for number in range(1000)}
    absent = tuple((f"x-{number}", "it is not ready") for number in range(500))
    message = adapter_verdict(worker_set(1000, *absent), "base", (), failures).message
    assert "1000 failing: pod-0000: HTTP 500: no; " in message
    assert message.endswith("and 995 more; not among them: 500 pods (it is not ready)")
    assert len(message) < 400
    assert unloading_verdict(2, failures).message.startswith(
        "2 workers may still have the adapter loaded; 1000 failing"
    )


def test_a_status_lists_as_many_workers_as_fit_into_an_object_and_counts_all():
    """With 10,000 pods the status had more than a megabyte."""
    there = worker_set(10_000)
    written = status_of(MODEL, there, base_verdict(there, "base"), there.ready, NOW)
    assert (len(written["endpoints"]), written["readyEndpoints"], written["totalEndpoints"]) == (1000, 10_000, 10_000)
    message = "10000 workers serve 'base'; 9000 workers are not listed in status.endpoints"
    assert written["conditions"][0]["message"] == message


def test_the_status():
    there = worker_set(2)
    verdict = adapter_verdict(there, "base", there.ready[:1], {})
    written = status_of(MODEL, there, verdict, there.ready[:1], NOW)
    now = {"observedGeneration": 4, "lastTransitionTime": "2026-01-02T03:04:05Z"}
    loaded, slices = "1 of 2 workers have the adapter loaded", "EndpointSlices of dynamo-model-1"
    assert written.pop("conditions") == [
        {"type": "EndpointsReady", "status": "False", "reason": "NotReady", "message": loaded, **now},
        {"type": "ServicesFound", "status": "True", "reason": "ServicesFound", "message": slices, **now},
    ]
    endpoints = [
        {"address": "http://10.0.0.0:9090", "podName": "pod-0", "ready": True},
        {"address": "http://10.0.0.1:9090", "podName": "pod-1", "ready": False},
    ]
    assert written == {"endpoints": endpoints, "readyEndpoints": 1, "totalEndpoints": 2}


def test_transition_times_stay_while_no_condition_changes():
    first = status_of(MODEL, worker_set(1), base_verdict(worker_set(1), "b"), worker_set(1).ready, NOW)
    again = status_of(
        {**MODEL, "status": first},
        worker_set(2),
        base_verdict(worker_set(2), "b"),
        worker_set(2).ready,
        datetime.now(UTC),
    )
    assert [each["lastTransitionTime"] for each in again["conditions"]] == ["2026-01-02T03:04:05Z"] * 2


def test_no_endpoints_and_no_services():
    status = status_of(MODEL, WorkerSet(), base_verdict(WorkerSet(), "b"), (), NOW)
    assert (status["readyEndpoints"], status["totalEndpoints"]) == (0, 0)
    assert status["endpoints"] == []
    assert status["conditions"][1]["reason"] == "NoServicesFound"
