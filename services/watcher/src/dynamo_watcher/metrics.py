"""Every metric of the watcher, in one place. Those of publishing (latency, backlog) are the bus's."""

from __future__ import annotations

import time

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry, Counter, Gauge


class WatcherMetrics(ServiceMetrics):
    """Figures by resource."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._changes = Counter(
            "dynamo_watcher_changes", "Changes that the API server reported.", ["resource", "kind"], registry=registry
        )
        self._objects = Gauge("dynamo_watcher_objects", "Objects that STATE has.", ["resource"], registry=registry)
        self._synced = Gauge(
            "dynamo_watcher_last_synced_timestamp_seconds",
            "When a complete list of the resource was last in STATE, as a Unix time.",
            ["resource"],
            registry=registry,
        )
        self._lists = Counter(
            "dynamo_watcher_lists", "Complete lists of a resource that were read.", ["resource"], registry=registry
        )
        self._active = Gauge(
            "dynamo_watcher_active", "1 where this replica publishes, 0 where it stands by.", registry=registry
        )

    def changed(self, resource: str, kind: str) -> None:
        """The API server reported a change."""
        self._changes.labels(resource, kind).inc()

    def counted(self, resource: str, count: int) -> None:
        """STATE has so many objects of a resource."""
        self._objects.labels(resource).set(count)

    def synced(self, resource: str, count: int) -> None:
        """A complete list of a resource is in STATE."""
        self._lists.labels(resource).inc()
        self._synced.labels(resource).set(time.time())
        self.counted(resource, count)

    def active(self, active: bool) -> None:
        """Whether the replica publishes or stands by."""
        self._active.set(active)
