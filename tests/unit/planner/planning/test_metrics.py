"""The metrics of Dynamo's planner for each graph, which its dashboard shows."""

import pytest
from dynamo_planner.metrics import GAUGES, PlanMetrics
from prometheus_client import CollectorRegistry

from tests.building.clock import ManualClock

GRAPH = ("team", "qwen")
LABELS = {"namespace": "team", "graph": "qwen"}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_targets_of_a_graph_are_exposed(registry: CollectorRegistry) -> None:
    metrics = PlanMetrics(registry, ManualClock(100.0))
    metrics.tick(GRAPH, {"target.ttft_ms": 500.0, "target.itl_ms": 50.0}, {}, "Planned")
    assert registry.get_sample_value("dynamo_planner_sla_target_ttft_ms", LABELS) == 500
    assert registry.get_sample_value("dynamo_planner_sla_target_itl_ms", LABELS) == 50


def test_unknown_traffic_is_not_exposed_with_its_last_value(registry: CollectorRegistry) -> None:
    metrics = PlanMetrics(registry, ManualClock(100.0))

    def shown() -> tuple[float | None, float | None]:
        rate, ttft = "dynamo_planner_observed_requests_per_second", "dynamo_planner_observed_ttft_ms"
        return registry.get_sample_value(rate, LABELS), registry.get_sample_value(ttft, LABELS)

    busy = {"observed.requests_per_second": 8.0, "observed.ttft_ms": 250.0}
    for numbers, missing, expected in (
        (busy, {}, (8.0, 250.0)),
        ({}, {}, (8.0, 250.0)),  # It was not requested.
        ({"observed.requests_per_second": 0.0}, {}, (0.0, None)),
        (busy, {}, (8.0, 250.0)),
        ({}, {"traffic": "unreachable"}, (None, None)),
    ):
        metrics.tick(GRAPH, numbers, missing, "Holds")
        assert shown() == expected


def test_unknown_workers_are_not_exposed_with_their_last_number(registry: CollectorRegistry) -> None:
    metrics = PlanMetrics(registry, ManualClock(100.0))
    for numbers, expected in (({"ready.decode": 3.0}, 3.0), ({}, None), ({"ready.decode": 0.0}, 0.0)):
        metrics.tick(GRAPH, numbers, {}, "Holds")
        assert registry.get_sample_value("dynamo_planner_num_decode_replicas", LABELS) == expected


def test_only_the_targets_of_a_graph_are_exposed_while_its_planning_fails(registry: CollectorRegistry) -> None:
    metrics = PlanMetrics(registry, ManualClock(100.0))
    for other in (GRAPH, ("team", "llama")):
        metrics.tick(other, {key: 1.0 for _, key in GAUGES.values()}, {"traffic": "silent"}, "Planned")
    metrics.failed(GRAPH, "PlanningFailed")
    exposed = [
        sample for metric in registry.collect() for sample in metric.samples if sample.labels.items() >= LABELS.items()
    ]
    assert {sample.name for sample in exposed if sample.name in GAUGES} == {
        "dynamo_planner_sla_target_ttft_ms",
        "dynamo_planner_sla_target_itl_ms",
    }
    assert registry.get_sample_value("dynamo_planner_ticks_total", {**LABELS, "outcome": "PlanningFailed"}) == 1
    assert registry.get_sample_value("dynamo_planner_observed_ttft_ms", {**LABELS, "graph": "llama"}) == 1


def test_gpu_hours_accumulate_from_tick_to_tick(registry: CollectorRegistry) -> None:
    clock = ManualClock(100.0)
    metrics = PlanMetrics(registry, clock)
    for seconds, gpus in ((0.0, 8.0), (1800.0, 4.0), (3600.0, 4.0)):
        clock.now = 100.0 + seconds
        metrics.tick(GRAPH, {"ready.gpus": gpus}, {}, "Planned")
    # Eight for half an hour, then four for another half.
    assert registry.get_sample_value("dynamo_planner_gpu_hours", LABELS) == 6


def test_time_with_unknown_gpus_does_not_count(registry: CollectorRegistry) -> None:
    clock = ManualClock(100.0)
    metrics = PlanMetrics(registry, clock)
    metrics.tick(GRAPH, {"ready.gpus": 8.0}, {}, "Planned")
    clock.now += 1800
    metrics.tick(GRAPH, {}, {}, "Failed")
    clock.now += 1800
    metrics.tick(GRAPH, {"ready.gpus": 8.0}, {}, "Planned")
    assert registry.get_sample_value("dynamo_planner_gpu_hours", LABELS) == 4


def test_a_graph_that_is_no_longer_planned_has_no_metrics(registry: CollectorRegistry) -> None:
    metrics = PlanMetrics(registry, ManualClock(100.0))
    metrics.tick(GRAPH, {"ready.gpus": 8.0, "target.ttft_ms": 500.0}, {}, "Planned")
    metrics.forget(GRAPH)
    assert registry.get_sample_value("dynamo_planner_gpu_hours", LABELS) is None
    assert registry.get_sample_value("dynamo_planner_sla_target_ttft_ms", LABELS) is None
