"""Every metric of model-discovery, in one place."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dynamo_model_discovery.lora.standing import Standing

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60)


class AdapterMetrics:
    """Figures of loading and unloading LoRA adapters."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._requests = Counter(
            "dynamo_model_discovery_worker_requests",
            "Requests to workers, by what they were for (probe, load, unload) and how they ended.",
            ["operation", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "dynamo_model_discovery_worker_request_seconds",
            "Seconds that a request to a worker took.",
            ["operation"],
            buckets=SECONDS,
            registry=registry,
        )
        self._adapters = Gauge(
            "dynamo_model_discovery_adapters",
            "Adapters on workers, one for each of both, by state: loaded, waiting, failing, unloading.",
            ["state"],
            registry=registry,
        )

    def requested(self, operation: str, outcome: str, seconds: float) -> None:
        """A request ended."""
        self._requests.labels(operation, outcome).inc()
        self._seconds.labels(operation).observe(seconds)

    def counted(self, standings: Iterable[Standing]) -> None:
        """How things stand now."""
        counts = Count(_state(standing) for standing in standings)
        for state in ("loaded", "waiting", "failing", "unloading"):
            self._adapters.labels(state).set(counts[state])

    def close(self) -> None:
        """Takes the figures out of the registry, so that a service that is started again can put its own in."""
        for metric in (self._requests, self._seconds, self._adapters):
            self._registry.unregister(metric)


def _state(standing: Standing) -> str:
    if standing.failures:
        return "failing"
    if standing.adapter is None:
        return "unloading"
    return "loaded" if standing.loaded else "waiting"
