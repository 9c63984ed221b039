"""Retains the published state of workers that cannot be observed at the moment, also after a restart. Pure.

A source that has not been read yet, or an unreadable record, does not mean that a worker has ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.wire.discovered import WorkerData

from dynamo_model_discovery.workers.assembly import KUBERNETES, WorkerObservation


@dataclass(frozen=True, slots=True)
class Unobserved:
    """The sources and workers that cannot be observed now."""

    sources: frozenset[str] = frozenset()
    """sources that have not been read yet"""
    pods: frozenset[tuple[str, str]] = frozenset()
    """namespace and name of ready pods with unreadable records"""


def settle(
    published: Mapping[ObjectKey, WorkerData], observed: WorkerObservation, unobserved: Unobserved
) -> dict[ObjectKey, WorkerData]:
    """The observed workers, and the published workers that cannot be observed now."""
    located = {
        (worker.source, worker.name): worker
        for worker in published.values()
        if worker.source != KUBERNETES and worker.namespace
    }
    settled: dict[ObjectKey, WorkerData] = {}
    for key, current in observed.workers.items():
        located_worker = _at_first_location(current, located.get((current.source, current.name)))
        location = ObjectKey(located_worker.namespace, located_worker.name)
        before = published.get(location)
        settled[location] = before if before is not None and key in observed.damaged else located_worker
    for key, before in published.items():
        hidden = before.source in unobserved.sources or (
            before.source == KUBERNETES and (before.namespace, before.pod) in unobserved.pods
        )
        if hidden:
            settled.setdefault(key, before)
    return settled


def _at_first_location(worker: WorkerData, before: WorkerData | None) -> WorkerData:
    """The worker with its first location: its pod may end before its lease expires, and another pod may get the address.

    If the cards do not state a role, the worker also retains its role: cards may be deleted before endpoints.
    """
    if before is None or worker.source == KUBERNETES:
        return worker
    declared = any(card.worker_type for card in worker.models)
    return msgspec.structs.replace(
        worker,
        namespace=before.namespace,
        graph_deployment=before.graph_deployment,
        graph_component=before.graph_component,
        pod=before.pod,
        pod_uid=before.pod_uid,
        role=worker.role if declared or worker.role not in ("", "aggregated") else before.role,
    )
