"""All metrics of the scaler."""

from collections.abc import Mapping

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry


class AdapterMetrics(ServiceMetrics):
    """Figures of scaling adapters."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.scalings = self._counter(
            "dynamo_scaler_scalings",
            "Changes of replicas that adapters made in graphs, by namespace and direction: up or down.",
            ["namespace", "direction"],
        )
        self.conflicts = self._counter(
            "dynamo_scaler_conflicts",
            "Replicas that a client other than the adapter's owner set, by namespace and reason.",
            ["namespace", "reason"],
        )

    def scaled(self, namespace: str, before: int, now: int) -> None:
        """A graph got another number."""
        self.scalings.labels(namespace, "up" if now > before else "down").inc()


class DecisionMetrics(ServiceMetrics):
    """Figures of decisions about scale commands."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.decisions = self._counter(
            "dynamo_scaler_decisions",
            "Decisions about scale commands, by their event and reason.",
            ["event", "reason"],
        )
        self._budgets = self._gauge(
            "dynamo_scaler_budget_gpus",
            "GPUs of all desired replicas in a budget, as of the last decision about the budget.",
            ["budget"],
        )

    def budgets(self, gpus: Mapping[str, int]) -> None:
        """GPUs by budget."""
        for name, count in gpus.items():
            self._budgets.labels(name).set(count)

    def no_budgets(self) -> None:
        """Another replica decides: its figures count, and those of this one become outdated."""
        self._budgets.clear()
