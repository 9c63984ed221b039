"""Which objects are reconciled after a change of another one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    NAMESPACES,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUE_SETS,
    ObjectKey,
)
from dynamo_shared.runtime.routes import CacheChange
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder.artifact_images import LEGACY
from dynamo_pod_builder.co_owners import owners_of
from dynamo_pod_builder.pods import component_of
from dynamo_pod_builder.reconcilers.graph.steps.rollout import IN_PROGRESS
from dynamo_pod_builder.reconcilers.scaling import components_of, other_generations

_OWNERS = (DYNAMO_CHECKPOINTS, DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS)
#: The kinds of owners, by the concern of their tasks.
BY_CONCERN = {each.plural: each for each in _OWNERS}


def of_child(change: CacheChange) -> Iterable[Task]:
    """The owner of a child, and its previous owner: no other event reports that the child was lost.

    One owner of a co-owned object suffices to correct it. All of them are needed when it is deleted: the first one
    recreates it, and the others become its owners again.
    """
    versions = [each for each in (change.old, change.new) if each is not None]
    owners = [owner for each in versions for owner in _concerned(each, change.new)]
    return dict.fromkeys(task for owner in owners for task in _of_owner(change, owner))


def namespace_of(change: CacheChange) -> Iterable[Task]:
    """The namespace of an object: its shared objects may be without use."""
    return (Task.of(NAMESPACES, ObjectKey("", change.key.namespace)),)


def legacy_of(change: CacheChange) -> Iterator[Task]:
    """The object of a kind before graphs that owns a graph, and the one that owned it before."""
    owners = [objects.controller_of(each) for each in (change.old, change.new) if each is not None]
    tasks = [
        Task.of(resource, ObjectKey(change.key.namespace, owner["name"]))
        for owner in owners
        for resource in LEGACY
        if owner is not None and owner["kind"] == resource.kind
    ]
    yield from dict.fromkeys(tasks)


@dataclass(frozen=True, slots=True)
class CachedTargets:
    """Those that only other objects of the cache name."""

    cache: ObjectCache

    def scaled(self, change: CacheChange) -> Iterator[Task]:
        """The adapters of a graph whose replicas changed."""
        resource = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
        return (Task.of(resource, each) for each in components_of(self.cache, change.obj))

    def other_components(self, change: CacheChange) -> Iterator[Task]:
        """The other generations of a component."""
        return (Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, each) for each in other_generations(self.cache, change.obj))

    def owners(self, change: CacheChange) -> Iterable[Task]:
        """All owners of a child, of Grove's objects too."""
        return (*of_child(change), *self.of_set(change))

    def of_set(self, change: CacheChange) -> Iterator[Task]:
        """The graph of the PodCliqueSet from which Grove made this object, directly or through a scaling group."""
        namespace = change.key.namespace
        owner = objects.controller_of(change.obj)
        if owner is not None and owner["kind"] == POD_CLIQUE_SCALING_GROUPS.kind:
            group = self.cache.get(POD_CLIQUE_SCALING_GROUPS, ObjectKey(namespace, owner["name"]))
            owner = objects.controller_of(group) if group is not None else None
        if owner is not None and owner["kind"] == POD_CLIQUE_SETS.kind:
            grove_set = self.cache.get(POD_CLIQUE_SETS, ObjectKey(namespace, owner["name"]))
            if grove_set is not None and (graph := objects.controller_of(grove_set)):
                yield Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, graph["name"]))

    def of_pod(self, change: CacheChange) -> Iterator[Task]:
        """The component deployment of a pod; of a pod of Grove, the graph."""
        if component := component_of(self.cache, change.obj):
            yield Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey(change.key.namespace, component))
        else:
            yield from _graph_of(change)

    def rolled(self, change: CacheChange) -> Iterator[Task]:
        """The graph of a pod during a rolling update: new pods may wait for the last of the old ones."""
        for task in _graph_of(change):
            graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, task.key) or {}
            if (graph.get("status", {}).get("rollingUpdate") or {}).get("phase") == IN_PROGRESS:
                yield task

    def sharers(self, change: CacheChange) -> Iterator[Task]:
        """All graphs of a namespace: they share the object."""
        graphs = self.cache.keys(DYNAMO_GRAPH_DEPLOYMENTS, change.key.namespace)
        return (Task.of(DYNAMO_GRAPH_DEPLOYMENTS, each) for each in graphs)


def _concerned(child: KubeObject, now: KubeObject | None) -> Iterator[KubeObject | None]:
    """The first owner of a version of a child, and those that the child no longer has. None stands for "no owner"."""
    owners = owners_of(child)
    present = {each["uid"] for each in owners_of(now)} if now is not None else ()
    yield owners[0] if owners else None
    yield from (each for each in owners[1:] if each["uid"] not in present)


def _of_owner(change: CacheChange, owner: KubeObject | None) -> Iterator[Task]:
    if owner is None:
        # Objects that graphs share have no owner: the namespace's clean-up is reconciled.
        yield from namespace_of(change)
        return
    for resource in _OWNERS:
        if owner["kind"] == resource.kind:
            yield Task.of(resource, ObjectKey(change.key.namespace, owner["name"]))
    if owner["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
        yield from _graph_of(change)


def _graph_of(change: CacheChange) -> Iterator[Task]:
    if name := objects.labels(change.obj).get(labels.GRAPH_DEPLOYMENT_NAME):
        yield Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(change.key.namespace, name))
