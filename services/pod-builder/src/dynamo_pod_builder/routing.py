"""Which reconciler gets which key when an object changes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_NIM_DEPLOYMENTS,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    PODS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime.tasks import Task

from dynamo_pod_builder.cohorts import has_ended
from dynamo_pod_builder.pods import component_of
from dynamo_pod_builder.status.pods import trouble_of


class BuilderConcern(enum.StrEnum):
    """What is reconciled: a graph, a component, its replicas alone, what the graphs of a namespace share, a pod that ended."""

    GRAPH = "dynamographdeployments"
    COMPONENT = "dynamocomponentdeployments"
    SCALING = "dynamographdeploymentscalingadapters"
    CHECKPOINT = "dynamocheckpoints"
    LEGACY_DEPLOYMENT = "dynamodeployments"
    LEGACY_SERVICE = "dynamonimdeployments"
    NAMESPACE = "namespaces"
    COHORT = "pods"


#: Kinds before graphs that run.
LEGACY = {
    DYNAMO_DEPLOYMENTS: BuilderConcern.LEGACY_DEPLOYMENT,
    DYNAMO_NIM_DEPLOYMENTS: BuilderConcern.LEGACY_SERVICE,
}


def tasks_for(
    resource: Resource,
    key: ObjectKey,
    old: KubeObject | None,
    new: KubeObject | None,
    graph_of_set: Callable[[ObjectKey], str],
) -> Iterator[Task]:
    """Tasks that a change of an object asks for. `old` and `new` are the object before and after; None where it does not exist.

    `graph_of_set` names the graph of a PodCliqueSet, "" where it has none: what Grove makes of a set belongs to the set.
    """
    if old is not None and new is not None and _only_own_status(resource, old, new):
        # Our own status write comes back to us; only what a component or a graph belongs to wants to know.
        if resource == DYNAMO_COMPONENT_DEPLOYMENTS:
            yield from _graph_of(key.namespace, new)
        yield from _legacy_of(key.namespace, new)
        return
    obj = new if new is not None else old
    if obj is None:
        return
    if resource == PODS:
        if new is not None and has_ended(new):
            yield Task(BuilderConcern.COHORT, key)
        yield from _of_pod(key.namespace, old, new)
        return
    if resource == DYNAMO_GRAPH_DEPLOYMENTS:
        yield Task(BuilderConcern.GRAPH, key)
        yield from _legacy_of(key.namespace, obj)
        if new is None:
            yield Task(BuilderConcern.NAMESPACE, ObjectKey("", key.namespace))
        return
    if resource == DYNAMO_COMPONENT_DEPLOYMENTS:
        yield Task(BuilderConcern.COMPONENT, key)
        yield from _graph_of(key.namespace, obj)
        return
    if resource == DYNAMO_CHECKPOINTS:
        yield Task(BuilderConcern.CHECKPOINT, key)
        return
    if resource in LEGACY:
        yield Task(LEGACY[resource], key)
        return
    yield from _of_child(resource, key, obj, graph_of_set)


def is_of_status(old: KubeObject | None, new: KubeObject | None) -> bool:
    """Whether all that changed of an object is its status, or who wrote what."""
    return old is not None and new is not None and _rest(old) == _rest(new) and old.get("spec") == new.get("spec")


def is_of_replicas(old: KubeObject | None, new: KubeObject | None) -> bool:
    """Whether all that changed of an object is how many replicas are asked for."""
    if old is None or new is None or _rest(old) != _rest(new) or old.get("status") != new.get("status"):
        return False
    before, after = ({**each.get("spec", {}), "replicas": None} for each in (old, new))
    return before == after


def _rest(obj: KubeObject) -> KubeObject:
    """Metadata but for what counts changes; annotations on an adapter are its writers'."""
    left_out = {"resourceVersion", "generation", "managedFields"}
    if obj.get("kind") == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind:
        left_out.add("annotations")
    return {name: value for name, value in obj["metadata"].items() if name not in left_out}


def _of_child(
    resource: Resource, key: ObjectKey, obj: KubeObject, graph_of_set: Callable[[ObjectKey], str]
) -> Iterator[Task]:
    owner = objects.controller_of(obj)
    if resource in (POD_CLIQUES, POD_CLIQUE_SCALING_GROUPS):
        if owner is not None and owner["kind"] == POD_CLIQUE_SETS.kind:
            name = graph_of_set(ObjectKey(key.namespace, owner["name"]))
            if name:
                yield Task(BuilderConcern.GRAPH, ObjectKey(key.namespace, name))
    elif owner is None:
        # Shared objects have no owner: the namespace's clean-up and their users are reconciled.
        yield Task(BuilderConcern.NAMESPACE, ObjectKey("", key.namespace))
    elif owner["kind"] == DYNAMO_CHECKPOINTS.kind:
        yield Task(BuilderConcern.CHECKPOINT, ObjectKey(key.namespace, owner["name"]))
    elif owner["kind"] == DYNAMO_GRAPH_DEPLOYMENTS.kind:
        yield Task(BuilderConcern.GRAPH, ObjectKey(key.namespace, owner["name"]))
    elif owner["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
        yield Task(BuilderConcern.COMPONENT, ObjectKey(key.namespace, owner["name"]))
        yield from _graph_of(key.namespace, obj)


def _of_pod(namespace: str, old: KubeObject | None, new: KubeObject | None) -> Iterator[Task]:
    """Only where its trouble changes: workloads report how many pods serve, and components pass it on to their graph."""
    pod = new or old or {}
    if (old and trouble_of(old)) == (new and trouble_of(new)):
        return
    if component := component_of(pod):
        yield Task(BuilderConcern.COMPONENT, ObjectKey(namespace, component))
    else:
        yield from _graph_of(namespace, pod)


def _graph_of(namespace: str, obj: KubeObject) -> Iterator[Task]:
    name = objects.labels(obj).get(labels.GRAPH_DEPLOYMENT_NAME)
    if name:
        yield Task(BuilderConcern.GRAPH, ObjectKey(namespace, name))


def _legacy_of(namespace: str, graph: KubeObject) -> Iterator[Task]:
    """The object of a kind before graphs that a graph belongs to."""
    owner = objects.controller_of(graph)
    for resource, concern in LEGACY.items():
        if owner is not None and owner["kind"] == resource.kind:
            yield Task(concern, ObjectKey(namespace, owner["name"]))


def _only_own_status(resource: Resource, old: KubeObject, new: KubeObject) -> bool:
    if resource not in {DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS, *LEGACY}:
        return False
    before, after = old["metadata"], new["metadata"]
    return bool(
        before["uid"] == after["uid"]
        and old.get("spec") == new.get("spec")
        and all(before.get(name) == after.get(name) for name in ("labels", "annotations", "deletionTimestamp"))
    )
