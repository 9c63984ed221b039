"""Workers that cannot be observed at the moment stay unchanged. Pure.

A source that has not been read yet, or an unreadable record, says nothing about a worker, and does not mean that the
worker is gone. The last published state counts, also after a restart.
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
    """that have not been read yet"""
    pods: frozenset[tuple[str, str]] = frozenset()
    """namespace and name of pods that are ready, and whose records cannot be read"""


def settle(
    published: Mapping[ObjectKey, WorkerData], observed: WorkerObservation, unobserved: Unobserved
) -> dict[ObjectKey, WorkerData]:
    """The workers, as far as known."""
    placed = {
        (worker.source, worker.name): worker
        for worker in published.values()
        if worker.source != KUBERNETES and worker.namespace
    }
    settled: dict[ObjectKey, WorkerData] = {}
    for key, current in observed.workers.items():
        kept = _at_first_location(current, placed.get((current.source, current.name)))
        place = ObjectKey(kept.namespace, kept.name)
        before = published.get(place)
        settled[place] = before if before is not None and key in observed.damaged else kept
    for key, before in published.items():
        hidden = before.source in unobserved.sources or (
            before.source == KUBERNETES and (before.namespace, before.pod) in unobserved.pods
        )
        if hidden:
            settled.setdefault(key, before)
    return settled


def _at_first_location(worker: WorkerData, before: WorkerData | None) -> WorkerData:
    """The worker at its first location: a pod may go before its lease expires, and another pod may get its address.

    If its cards do not state a role, its first role counts, too: cards may go before endpoints.
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
