"""Every metric of the scaler, in one place."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


class AdapterMetrics:
    """Figures of scaling adapters."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._scalings = Counter(
            "dynamo_scaler_scalings",
            "Numbers of adapters that graphs were given, by namespace and direction: up or down.",
            ["namespace", "direction"],
            registry=registry,
        )
        self._conflicts = Counter(
            "dynamo_scaler_conflicts",
            "Numbers that somebody beside the adapter's owner set, by namespace and reason.",
            ["namespace", "reason"],
            registry=registry,
        )

    def scaled(self, namespace: str, before: int, now: int) -> None:
        """A graph was given another number."""
        self._scalings.labels(namespace, "up" if now > before else "down").inc()

    def conflict(self, namespace: str, reason: str) -> None:
        """A conflict was found."""
        self._conflicts.labels(namespace, reason).inc()

    def close(self) -> None:
        """The service ends: its process may run it again."""
        for each in (self._scalings, self._conflicts):
            self._registry.unregister(each)
