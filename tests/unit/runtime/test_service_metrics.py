"""Metrics of a service are removed from the registry when it stops."""

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry, Counter


class _Metrics(ServiceMetrics):
    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.requests = self._counter("a", "A.", ["label"])
        self.objects = self._gauge("b", "B.")
        self.seconds = self._histogram("c", "C.")
        self._reported: dict[str, int] = {"a": 1}
        self._gauges = {name: self._gauge(name, "D.") for name in ("d", "e")}


def test_a_restarted_service_registers_its_metrics_again() -> None:
    registry = CollectorRegistry()
    other = Counter("other", "Of the process.", registry=registry)
    with _Metrics(registry):
        assert len(list(registry.collect())) == 6
    assert list(registry.collect()) == list(other.collect())
    _Metrics(registry)
    assert {metric.name for metric in registry.collect()} == {"a", "b", "c", "d", "e", "other"}
