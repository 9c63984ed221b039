"""All metrics of the watcher. The bus has the metrics of publishing (latency, backlog)."""

import time
from functools import cache

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry


class WatcherMetrics(ServiceMetrics):
    """Figures by resource."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.changes = self._counter(
            "dynamo_watcher_changes", "Changes that the API server reported.", ["resource", "kind"]
        )
        self.change = cache(self.changes.labels)
        self.objects = self._gauge("dynamo_watcher_objects", "Objects in STATE.", ["resource"])
        self._synced = self._gauge(
            "dynamo_watcher_last_synced_timestamp_seconds",
            "Unix time at which STATE last had a complete list of the resource.",
            ["resource"],
        )
        self._lists = self._counter(
            "dynamo_watcher_lists", "Complete lists of a resource that the watcher read.", ["resource"]
        )
        self.active = self._gauge("dynamo_watcher_active", "1 if this replica publishes, 0 if it is a standby.")

    def synced(self, resource: str, count: int) -> None:
        """A complete list of a resource is in STATE."""
        self._lists.labels(resource).inc()
        self._synced.labels(resource).set(time.time())
        self.objects.labels(resource).set(count)
