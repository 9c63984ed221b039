"""Every metric of the image-builder, in one place."""

from __future__ import annotations

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry, Counter


class BuildMetrics(ServiceMetrics):
    """Figures of builds."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._answers = Counter(
            "dynamo_image_builder_answers",
            "Requests for images that were answered, by namespace and result: built, cached or failed.",
            ["namespace", "result"],
            registry=registry,
        )

    def answered(self, namespace: str, result: str) -> None:
        """A request has its answer."""
        self._answers.labels(namespace, result).inc()
