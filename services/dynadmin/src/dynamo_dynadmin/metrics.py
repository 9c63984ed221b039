"""All metrics of the dynadmin service."""

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class DynadminMetrics(ServiceMetrics):
    """Requests, streams, and refused callers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._requests = self._counter(
            "dynamo_dynadmin_requests",
            "Answered requests, by operation and status.",
            ["operation", "status"],
        )
        self._seconds = self._histogram(
            "dynamo_dynadmin_request_duration_seconds",
            "Seconds from a request to its answer, without streams.",
            ["operation"],
            buckets=SECONDS,
        )
        self.streams = self._gauge("dynamo_dynadmin_streams", "Open streams.")
        self.in_flight = self._gauge("dynamo_dynadmin_requests_in_flight", "Requests in progress.")
        self.refused = self._counter(
            "dynamo_dynadmin_requests_refused",
            "Requests that were refused before handling: unidentified, disallowed, csrf, impersonation, rate, busy.",
            ["reason"],
        )

    def answered(self, operation: str, status: int, seconds: float | None) -> None:
        """Count an answered request; `seconds` is None for a stream."""
        self._requests.labels(operation, str(status)).inc()
        if seconds is not None:
            self._seconds.labels(operation).observe(seconds)
