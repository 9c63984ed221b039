"""Prometheus metrics of a process, under the reference operator's names if the meaning is the same.

There is no global registry: each part gets a `Metrics`, so that tests and several platforms in one process do not share
figures. Children of labels are bound once: an increment costs 0.3 us, a lookup much more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Literal, Self, get_args
from weakref import WeakSet

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dynamo_shared.kube.errors import KubeError
from dynamo_shared.kube.event_series import EventOutcome

# Bounds of the reference operator (operator behaviour, section 10).
RECONCILE_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
#: A quantile never exceeds the last bound, and an alert checks whether a quantile of waiting times is above a minute.
WAIT_SECONDS = (*RECONCILE_SECONDS, 120, 300, 900)

Outcome = Literal["success", "error", "requeue", "conflict"]

_ERROR_TYPES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    408: "timeout",
    422: "validation",
    429: "rate_limited",
    503: "unavailable",
    504: "server_timeout",
}


class QueueMetrics:
    """Metrics of one work queue, bound to its name."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self.depth = metrics.queue_depth.labels(name)
        self.longest = metrics.queue_longest_work.labels(name)
        self.adds = metrics.queue_adds.labels(name)
        self.retries = metrics.queue_retries.labels(name)
        self.waited = metrics.queue_waited.labels(name)


class ResourceCounts(Collector):
    """Number of objects by state, replaced at each count, so that an empty state loses its figure.

    The reference sets gauges and never removes one.
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[tuple[str, str], int]] = {}

    def replace(self, resource_type: str, counts: Mapping[tuple[str, str], int]) -> None:
        """Replace the counts of a type: number of objects by (namespace, status)."""
        self._counts[resource_type] = dict(counts)

    def collect(self) -> Iterable[Metric]:
        """The metrics, for the registry."""
        family = GaugeMetricFamily(
            "dynamo_operator_resources_total",
            "Number of objects, by state.",
            labels=["resource_type", "namespace", "status"],
        )
        for resource_type, counts in self._counts.items():
            for (namespace, status), count in counts.items():
                family.add_metric([resource_type, namespace, status], count)
        yield family


class Metrics:
    """All metrics that several services have. Services add their own to `registry`."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._reconcile_seconds = histogram(
            "dynamo_operator_reconcile_duration_seconds",
            "Duration of a reconcile of an object, in seconds.",
            ["resource_type", "namespace", "result"],
            buckets=RECONCILE_SECONDS,
        )
        self._reconciles = counter(
            "dynamo_operator_reconcile_total",
            "Reconciles of objects, by result: success, requeue (reconciled again later), conflict (another client changed the "
            "object; retried) or error (retried).",
            ["resource_type", "namespace", "result"],
        )
        self._errors = counter(
            "dynamo_operator_reconcile_errors_total",
            "Failed reconciles of objects, by type of error, without conflicts.",
            ["resource_type", "namespace", "error_type"],
        )
        #: By resource type: namespaces with figures, and those of them without an object at the last count.
        self._reported: defaultdict[str, set[str]] = defaultdict(set)
        self._empty: dict[str, set[str]] = {}
        self._of_namespaces: defaultdict[str, WeakSet[Counter]] = defaultdict(WeakSet)
        self.resources = ResourceCounts()
        registry.register(self.resources)
        self.queue_depth = gauge("dynamo_platform_queue_depth", "Keys that wait to be reconciled.", ["queue"])
        self.queue_longest_work = gauge(
            "dynamo_platform_queue_longest_work_seconds",
            "Duration so far of the longest-running reconcile, in seconds; 0 if none is running.",
            ["queue"],
        )
        self.queue_adds = counter("dynamo_platform_queue_adds", "Keys added to the queue.", ["queue"])
        self.queue_retries = counter("dynamo_platform_queue_retries", "Keys added again after a failure.", ["queue"])
        self.queue_waited = histogram(
            "dynamo_platform_queue_wait_seconds",
            "Time that a key waits in the queue, in seconds.",
            ["queue"],
            buckets=WAIT_SECONDS,
        )
        self.service_restarts = counter(
            "dynamo_platform_service_restarts", "Restarts of services after an error.", ["service"]
        )
        self.part_failures = counter(
            "dynamo_platform_part_failures",
            "Restarts of background tasks of a service after an error.",
            ["service", "part"],
        )
        self.object_failures = counter(
            "dynamo_platform_object_failures",
            "Objects that a service could not process because of an unexpected error; the log names them.",
            ["service", "resource"],
        )
        self.partitions = gauge(
            "dynamo_platform_partitions",
            "Partitions of a service that this replica owns; absent with one replica.",
            ["service"],
        )
        self.cached_objects = gauge(
            "dynamo_platform_cached_objects",
            "Objects in the cache of a service: all objects, or those of the replica's partitions.",
            ["service", "resource"],
        )
        self.lease_alive = gauge(
            "dynamo_platform_lease_alive",
            "Whether this replica holds a valid lease in etcd: 1 or 0; NaN if it needs none.",
        )
        # The alert fires below 1, and NaN is not below 1.
        self.lease_alive.set(math.nan)
        self.lease_losses = counter(
            "dynamo_platform_lease_losses", "Leases in etcd that were lost before this replica released them."
        )
        self.kube_requests = counter(
            "dynamo_platform_kube_requests", "Requests to the API server.", ["method", "resource", "code"]
        )
        self._request = cache(self.kube_requests.labels)
        self.kube_events = counter(
            "dynamo_platform_kube_events",
            "Kubernetes Events, by outcome: written, counted (added to the series of an existing Event), suppressed (too many of "
            "one object and reason) or dropped (not accepted in time).",
            ["reporter", "outcome"],
        )

    def queue(self, name: str) -> QueueMetrics:
        """Metrics of the work queue of that name."""
        return QueueMetrics(self, name)

    def events(self, reporter: str) -> Callable[[EventOutcome], None]:
        """A function that counts the outcomes of a reporter's Events."""
        children = {each: self.kube_events.labels(reporter, each) for each in get_args(EventOutcome)}
        return lambda outcome: children[outcome].inc()

    def reconciled(self, resource_type: str, namespace: str, outcome: Outcome, seconds: float) -> None:
        """Count a finished reconcile of an object."""
        self._reported[resource_type].add(namespace)
        self._reconcile_seconds.labels(resource_type, namespace, outcome).observe(seconds)
        self._reconciles.labels(resource_type, namespace, outcome).inc()

    def failed(self, resource_type: str, namespace: str, error: BaseException) -> None:
        """Count a failed reconcile of an object."""
        self._reported[resource_type].add(namespace)
        self._errors.labels(resource_type, namespace, error_type(error)).inc()

    def of_namespaces(self, resource_type: str, *counters: Counter) -> None:
        """Register a service's counters with a label `namespace`, to be removed with this type's reconcile figures."""
        self._of_namespaces[resource_type].update(counters)

    def keep_namespaces(self, resource_types: Iterable[str], present: Collection[str]) -> None:
        """Remove figures of namespaces that had no objects in two counts in a row; `present`: namespaces with objects."""
        for resource_type in resource_types:
            reported = self._reported[resource_type]
            empty = reported.difference(present)
            for namespace in empty & self._empty.get(resource_type, set()):
                for each in (self._reconcile_seconds, self._reconciles, self._errors):
                    each.remove_by_labels({"resource_type": resource_type, "namespace": namespace})
                for own in self._of_namespaces[resource_type]:
                    own.remove_by_labels({"namespace": namespace})
                reported.discard(namespace)
            self._empty[resource_type] = empty & reported

    def kube_request(self, method: str, resource: str, code: int) -> None:
        """Count a request to the API server; `code` 0 if it did not answer."""
        self._request(method, resource, str(code)).inc()


class ServiceMetrics:
    """Base class for the metrics of one service, which are its attributes, or values of a dict.

    As a context manager it removes them from the registry at the end, so that a restarted service can register its own.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._counter, self._gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self._histogram = partial(Histogram, registry=registry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._all():
            self._registry.unregister(each)

    def _all(self) -> Iterator[Counter | Gauge | Histogram]:
        for attribute in vars(self).values():
            for each in attribute.values() if isinstance(attribute, dict) else (attribute,):
                if isinstance(each, Counter | Gauge | Histogram):
                    yield each


def error_type(error: BaseException) -> str:
    """The reference operator's name for a kind of error."""
    if isinstance(error, KubeError):
        if error.reason == "AlreadyExists":
            return "already_exists"
        return _ERROR_TYPES.get(error.status, "internal")
    return "timeout" if isinstance(error, TimeoutError) else "internal"
