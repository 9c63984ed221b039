"""All metrics of the image-builder."""

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry


class BuildMetrics(ServiceMetrics):
    """Figures of builds."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.answers = self._counter(
            "dynamo_image_builder_answers",
            "Answered requests for images, by namespace and result: built, cached or failed.",
            ["namespace", "result"],
        )
