"""All metrics of model-discovery."""

from collections import Counter as Count
from collections.abc import Iterable, Mapping

from dynamo_shared.runtime.metrics import ServiceMetrics
from dynamo_shared.wire.discovered import ServedModelData, WorkerData
from prometheus_client import CollectorRegistry

from dynamo_model_discovery.lora.adapter_state import AdapterState

#: Worker types of Dynamo.
ROLES = frozenset({"aggregated", "prefill", "decode", "encode"})
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60)


class LoraMetrics(ServiceMetrics):
    """Metrics of loading and unloading LoRA adapters."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._requests = self._counter(
            "dynamo_model_discovery_worker_requests",
            "Requests to workers, by operation (probe, load, unload) and outcome.",
            ["operation", "outcome"],
        )
        self._seconds = self._histogram(
            "dynamo_model_discovery_worker_request_seconds",
            "Duration of requests to workers, in seconds.",
            ["operation"],
            buckets=SECONDS,
        )
        self._adapters = self._gauge(
            "dynamo_model_discovery_adapters",
            "Pairs of an adapter and a worker, by state: loaded, waiting, failing, unloading.",
            ["state"],
        )

    def requested(self, operation: str, outcome: str, seconds: float) -> None:
        """A request ended."""
        self._requests.labels(operation, outcome).inc()
        self._seconds.labels(operation).observe(seconds)

    def counted(self, states: Iterable[AdapterState]) -> None:
        """Set the gauges from all present states."""
        counts = Count(_state(state) for state in states)
        for state in ("loaded", "waiting", "failing", "unloading"):
            self._adapters.labels(state).set(counts[state])


class WorkerMetrics(ServiceMetrics):
    """Metrics of worker discovery, from the active replica."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._workers = self._gauge(
            "dynamo_model_discovery_workers",
            "Workers in Dynamo's discovery, by role and by the source of their records.",
            ["role", "source"],
        )
        self._models = self._gauge(
            "dynamo_model_discovery_served_models",
            "Models that workers serve, by whether they can answer requests.",
            ["available"],
        )
        self._unreadable = self._gauge(
            "dynamo_model_discovery_unreadable_records",
            "Discovery records that could not be read.",
            ["source"],
        )

    def counted(
        self, workers: Iterable[WorkerData], models: Iterable[ServedModelData], unreadable: Mapping[str, int]
    ) -> None:
        """Set the gauges from all present workers and models, and the number of unreadable records by source."""
        self._workers.clear()
        for (role, source), count in Count((_role(worker.role), worker.source) for worker in workers).items():
            self._workers.labels(role, source).set(count)
        available = Count(model.available for model in models)
        for value in (True, False):
            self._models.labels(str(value).lower()).set(available[value])
        for source, count in unreadable.items():
            self._unreadable.labels(source).set(count)


def _role(role: str) -> str:
    """A role as a label value. Cards may contain any text, and each value creates a time series."""
    if not role:
        return "none"
    return role if role in ROLES else "other"


def _state(state: AdapterState) -> str:
    if state.failure:
        return "failing"
    if state.adapter is None:
        return "unloading"
    return "loaded" if state.loaded else "waiting"
