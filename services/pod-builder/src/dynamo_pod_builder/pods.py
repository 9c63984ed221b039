"""Pods by the workload that runs them, and the owners that their troubles concern."""

from collections.abc import Iterator

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    JOBS,
    LEADER_WORKER_SETS,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUES,
    PODS,
    ObjectKey,
    key_of,
)
from dynamo_shared.runtime.routes import CacheChange
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder.status.pods import trouble_of

#: The label that names the workload, by kind.
_NAMED_BY = (
    (POD_CLIQUES.kind, labels.GROVE_POD_CLIQUE),
    (POD_CLIQUE_SCALING_GROUPS.kind, labels.GROVE_SCALING_GROUP),
    (LEADER_WORKER_SETS.kind, labels.LWS_NAME),
    (JOBS.kind, labels.JOB_NAME),
    (DEPLOYMENTS.kind, labels.SELECTOR),
)
WORKLOAD_INDEX = "workload"


def index(cache: ObjectCache) -> None:
    """Index the cache's pods by workload."""
    cache.add_index(PODS, WORKLOAD_INDEX, _values)


async def pods_of(cache: ObjectCache, workload: KubeObject | None) -> list[KubeObject]:
    """Pods that a workload runs; empty without a workload."""
    if workload is None:
        return []
    return await cache.read_by_index(
        PODS, WORKLOAD_INDEX, index_value(workload.get("kind", DEPLOYMENTS.kind), key_of(workload))
    )


def index_value(kind: str, workload: ObjectKey) -> str:
    """The value in `WORKLOAD_INDEX` of the pods of a workload."""
    return f"{kind}/{workload.namespace}/{workload.name}"


def component_of(cache: ObjectCache, pod: KubeObject) -> str:
    """Name of the component deployment of a pod; "" for pods of Grove, which belong to graphs."""
    workloads = dict(_workloads(pod))
    if POD_CLIQUES.kind in workloads:
        return ""
    if groups := workloads.get(LEADER_WORKER_SETS.kind):
        worker_set = cache.get(LEADER_WORKER_SETS, ObjectKey(objects.namespace(pod), groups))
        owner = objects.controller_of(worker_set) if worker_set is not None else None
        return str(owner["name"]) if owner is not None else groups
    return workloads.get(DEPLOYMENTS.kind) or ""


def changes_trouble(change: CacheChange) -> bool:
    """Whether a pod's trouble begins, ends or changes. Workloads themselves report how many pods serve."""
    old, new = change.old, change.new
    return (old and trouble_of(old)) != (new and trouble_of(new))


def _workloads(pod: KubeObject) -> Iterator[tuple[str, str]]:
    pod_labels = objects.labels(pod)
    for kind, label in _NAMED_BY:
        # Pods of Grove also have the label of a Deployment's pods.
        if (name := pod_labels.get(label)) and not (label == labels.SELECTOR and labels.GROVE_POD_CLIQUE in pod_labels):
            yield kind, name


def _values(pod: KubeObject) -> list[str]:
    namespace = pod["metadata"].get("namespace", "")
    return [index_value(kind, ObjectKey(namespace, name)) for kind, name in _workloads(pod)]
