"""Replicas that adapters own: how they get into graphs and components, and the short path from adapter to pods.

1. An adapter's number changes: the workload of its component gets it at once, in one small patch, without rendering.
2. Graph and component are reconciled soon after. The workload is already right; the number in the component follows.

Both read the number from the adapter in the cache, so in either order, neither undoes the other's work.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from dynamo_shared.api import adapted, objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    POD_CLIQUE_SETS,
    ObjectKey,
    key_of,
)
from dynamo_shared.api.snapshots import WAIT
from dynamo_shared.kube.errors import Forbidden, Invalid, NotFound
from dynamo_shared.runtime import Result
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder.applier import Applier
from dynamo_pod_builder.children import OWNER_INDEX, children, workload_of


def with_replicas(component: KubeObject, replicas: int | None) -> KubeObject:
    """The component deployment with the replicas of its adapter; unchanged if no adapter owns them."""
    if replicas is None or component["spec"].get("replicas") == replicas:
        return component
    return {**component, "spec": {**component["spec"], "replicas": replicas}}


def components_of(cache: ObjectCache, adapter: KubeObject) -> Iterator[ObjectKey]:
    """Component deployments whose workload gets an adapter's number directly; empty if the graph must be rendered."""
    reference = adapter["spec"]["dgdRef"]
    graph = cache.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(adapter["metadata"]["namespace"], reference["name"]))
    if graph is None:
        return
    for each in children(cache, DYNAMO_COMPONENT_DEPLOYMENTS, graph):
        if _name_of(each) == reference["componentName"] and replicas_of(cache, each) is not None:
            yield key_of(each)


def other_generations(cache: ObjectCache, component: KubeObject) -> Iterator[ObjectKey]:
    """Other component deployments of the same component: when one is added or deleted, their number may change."""
    owner = objects.controller_of(component)
    if owner is None:
        return
    for each in cache.by_index(DYNAMO_COMPONENT_DEPLOYMENTS, OWNER_INDEX, owner["uid"]):
        if _name_of(each) == _name_of(component) and objects.uid(each) != objects.uid(component):
            yield key_of(each)


@dataclass(frozen=True, slots=True)
class ScalingReconciler:
    """Sets the replicas of one component's workload to the number of its adapter, and changes nothing else."""

    cache: ObjectCache
    applier: Applier

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one component deployment. Raises KubeError if the API server is unavailable."""
        component = self.cache.get(DYNAMO_COMPONENT_DEPLOYMENTS, key)
        if component is None or objects.is_deleting(component):
            return Result()
        workload, replicas = workload_of(self.cache, component), replicas_of(self.cache, component)
        if workload is None or replicas is None or workload["spec"].get("replicas") == replicas:
            return Result()
        # Deleted or refused: the component itself is reconciled next, and reports it.
        with contextlib.suppress(NotFound, Invalid, Forbidden):
            await self.applier.patch_replicas(resources.of(workload), workload, replicas)
        return Result()


def replicas_of(cache: ObjectCache, component: KubeObject) -> int | None:
    """The adapter's number, if it applies to this component deployment and no other.

    While generations take turns, the rolling update decides their numbers; pods on Grove have no component deployment.
    """
    owner = objects.controller_of(component)
    if owner is None or owner["kind"] != DYNAMO_GRAPH_DEPLOYMENTS.kind:
        return None
    graph = cache.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(component["metadata"]["namespace"], owner["name"]))
    if graph is None or objects.uid(graph) != owner["uid"] or children(cache, POD_CLIQUE_SETS, graph):
        return None
    if waits(component):
        return None
    name = _name_of(component)
    adapters = children(cache, DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, graph)
    number = adapted.replicas_of(graph, adapted.owning(graph, adapters)).get(name)
    generations = [each for each in children(cache, DYNAMO_COMPONENT_DEPLOYMENTS, graph) if _name_of(each) == name]
    return number if len(generations) == 1 else None


def waits(component: KubeObject) -> bool:
    """Whether its graph starts no further pod until its checkpoint is ready."""
    checkpoint = (component.get("spec", {}).get("experimental") or {}).get("checkpoint") or {}
    return bool(checkpoint.get("startupPolicy") == WAIT)


def _name_of(component: KubeObject) -> str:
    return objects.labels(component).get(labels.COMPONENT, "")
