"""Every metric of the scaler, in one place."""

from __future__ import annotations

from collections.abc import Mapping

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry, Counter, Gauge


class AdapterMetrics(ServiceMetrics):
    """Figures of scaling adapters."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._scalings = Counter(
            "dynamo_scaler_scalings",
            "Numbers of adapters that graphs were given, by namespace and direction: up or down.",
            ["namespace", "direction"],
            registry=registry,
        )
        self._conflicts = Counter(
            "dynamo_scaler_conflicts",
            "Numbers that another client than the adapter's owner set, by namespace and reason.",
            ["namespace", "reason"],
            registry=registry,
        )

    def scaled(self, namespace: str, before: int, now: int) -> None:
        """A graph was given another number."""
        self._scalings.labels(namespace, "up" if now > before else "down").inc()

    def conflict(self, namespace: str, reason: str) -> None:
        """A conflict was observed."""
        self._conflicts.labels(namespace, reason).inc()


class DecisionMetrics(ServiceMetrics):
    """Figures of decisions about scale commands."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._decisions = Counter(
            "dynamo_scaler_decisions",
            "Decisions about scale commands, by their event and reason.",
            ["event", "reason"],
            registry=registry,
        )
        self._budgets = Gauge(
            "dynamo_scaler_budget_gpus",
            "GPUs of all desired replicas that a budget counts, as of the last decision that concerned it.",
            ["budget"],
            registry=registry,
        )

    def decided(self, event: str, reason: str) -> None:
        """A decision was made."""
        self._decisions.labels(event, reason).inc()

    def budgets(self, gpus: Mapping[str, int]) -> None:
        """GPUs by budget."""
        for name, count in gpus.items():
            self._budgets.labels(name).set(count)
