"""Metrics of workers: the platform sets the labels, whatever workers report."""

from dynamo_model_discovery.metrics import WorkerMetrics
from prometheus_client import CollectorRegistry

from tests.unit.model_discovery.worker_building import worker


def test_an_unknown_role_is_not_a_label_value():
    registry = CollectorRegistry()
    roles = ["prefill", "", *(f"made-up-{number}" for number in range(100))]
    reported = [worker(f"d/c/{number:x}", role=role) for number, role in enumerate(roles)]
    WorkerMetrics(registry).counted(reported, [], {})
    (result,) = (each for each in registry.collect() if each.name == "dynamo_model_discovery_workers")
    assert {each.labels["role"]: each.value for each in result.samples} == {"prefill": 1, "none": 1, "other": 100}
