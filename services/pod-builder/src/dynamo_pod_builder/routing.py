"""Which reconciler gets which key when an object changes, and after what delay."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

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
    PODS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.runtime.routes import CacheChange, TaskRoute, differs
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import name_waits
from dynamo_pod_builder.artifact_images import LEGACY
from dynamo_pod_builder.children import OF_SETS, OWNED, SHARED, workload_of
from dynamo_pod_builder.co_owners import owners_of
from dynamo_pod_builder.cohorts import engine_has_ended
from dynamo_pod_builder.node_labels import lacking
from dynamo_pod_builder.pods import changes_trouble, component_of
from dynamo_pod_builder.reconcilers.graph.steps.rollout import IN_PROGRESS
from dynamo_pod_builder.reconcilers.namespace import OUTLIVING, is_shared
from dynamo_pod_builder.reconcilers.requeue import OBSERVED_WITHIN
from dynamo_pod_builder.reconcilers.scaling import components_of, other_generations
from dynamo_pod_builder.status.component import failure_of, is_observed, obstacle_of
from dynamo_pod_builder.status.workload import WORKLOADS, outlook, readiness, reported
from dynamo_pod_builder.status.workload import is_observed as is_acted_on

#: Adapters of one graph that change together are reconciled together. Seconds.
SETTLE = 0.02
#: Workloads of a graph begin to serve within moments of each other: their owner is reconciled once. Seconds.
TOGETHER = 0.05
#: Children are created in succession, and report at once unless their controller is busy. Seconds.
CREATED = 0.3
_ADAPTERS = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
_OWNERS = (DYNAMO_CHECKPOINTS, DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS)
_BY_CONCERN = {each.plural: each for each in _OWNERS}
#: Workloads that count pods: of component deployments and of Grove.
_COUNTED = frozenset({*WORKLOADS, *OF_SETS})
#: Children whose only rule is that their owner is reconciled.
_CHILDREN = frozenset(OWNED) - {DYNAMO_COMPONENT_DEPLOYMENTS, _ADAPTERS, *WORKLOADS}
#: The metadata that concerns reconcilers. A spec that was changed and changed back has another generation, which the
#: status must name; the versions in between may never be observed.
_RELEVANT = ("generation", "uid", "labels", "annotations", "deletionTimestamp")


def routes(
    cache: ObjectCache, debounce: Debounce, progress: Callable[[Resource, ObjectKey], float]
) -> tuple[TaskRoute, ...]:
    """The tasks that changes of graphs, and of their children, trigger.

    `progress` returns for how many seconds an object waits for further changes after a change that only its status
    reports.
    """

    def scaled(change: CacheChange) -> Iterator[Task]:
        return (Task.of(_ADAPTERS, each) for each in components_of(cache, change.obj))

    def at_once(_: CacheChange) -> float:
        debounce.after_one_more()
        return 0.0

    def after_pods(change: CacheChange) -> float:
        """Pods first: rendering only because of a number, and the reports, may wait a little."""
        return SETTLE + debounce.after_these() if is_of_replicas(change) else 0.0

    def after_others(change: CacheChange) -> float:
        return after_pods(change) or after_children(change)

    def after_children(change: CacheChange) -> float:
        """A child that others changed or deleted is corrected at once; pods that serve are reported soon; all else is
        progress.
        """
        if change.new is None or (_changes_spec(change) and not cache.is_answer(change.resource, change.new)):
            return 0.0
        if _outlook_changed(change):
            return TOGETHER
        if _changes_spec(change) or (change.old is None and cache.is_written(change.resource, change.key)):
            # The reconcile that wrote it has the answer, and another one begins when its status changes.
            return OBSERVED_WITHIN
        if change.old is None or (change.resource in _COUNTED and reported(change.old) == reported(change.new)):
            # Its status is reported, not its existence, nor an annotation of its own controller, which will report more
            # if it has not observed the spec yet.
            return CREATED if change.old is None or is_acted_on(change.new) else OBSERVED_WITHIN
        waits = [
            progress(_BY_CONCERN[task.concern], task.key) for task in owners(change) if task.concern in _BY_CONCERN
        ]
        return max(waits, default=TOGETHER)

    def after_components(change: CacheChange) -> float:
        """A status of a component deployment that its graph reads is not delayed: the graph waits for it."""
        return TOGETHER if _is_of_status(change) else after_children(change)

    def owners(change: CacheChange) -> Iterable[Task]:
        return (*_of_child(change), *of_set(change))

    def other_components(change: CacheChange) -> Iterator[Task]:
        return (Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, each) for each in other_generations(cache, change.obj))

    def of_set(change: CacheChange) -> Iterator[Task]:
        """The graph of the PodCliqueSet from which Grove made this object, directly or through a scaling group."""
        owner = objects.controller_of(change.obj)
        if owner is not None and owner["kind"] == POD_CLIQUE_SCALING_GROUPS.kind:
            group = cache.get(POD_CLIQUE_SCALING_GROUPS, ObjectKey(change.key.namespace, owner["name"]))
            owner = objects.controller_of(group) if group is not None else None
        if owner is not None and owner["kind"] == POD_CLIQUE_SETS.kind:
            grove_set = cache.get(POD_CLIQUE_SETS, ObjectKey(change.key.namespace, owner["name"]))
            if grove_set is not None and (graph := objects.controller_of(grove_set)):
                yield Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(change.key.namespace, graph["name"]))

    def concerns_graph(change: CacheChange) -> bool:
        """Whether a graph reads what changed in a component deployment, whose status repeats what the workload reports."""
        old, new = change.old, change.new
        if old is None or new is None or not _is_of_status(change):
            return True
        # The component checks pods in trouble repeatedly, and the graph is reconciled when the result changes.
        if failure_of(old) != failure_of(new) or obstacle_of(old) != obstacle_of(new):
            return True
        # If the workload serves, the graph needs to know whether it runs the present spec. The status itself may have
        # been written before the workload served.
        return is_observed(old) != is_observed(new) and readiness(workload_of(cache, new)).ready

    def rolled(change: CacheChange) -> Iterator[Task]:
        """The graph of a pod during a rolling update: new pods may wait for the last of the old ones."""
        for task in _graph_of(change):
            graph = cache.get(DYNAMO_GRAPH_DEPLOYMENTS, task.key) or {}
            if (graph.get("status", {}).get("rollingUpdate") or {}).get("phase") == IN_PROGRESS:
                yield task

    def sharers(change: CacheChange) -> Iterator[Task]:
        return (
            Task.of(DYNAMO_GRAPH_DEPLOYMENTS, each)
            for each in cache.keys(DYNAMO_GRAPH_DEPLOYMENTS, change.key.namespace)
        )

    return (
        TaskRoute(DYNAMO_GRAPH_DEPLOYMENTS, when=differs(_relevant)),
        TaskRoute(DYNAMO_GRAPH_DEPLOYMENTS, to=_legacy_of),
        TaskRoute(DYNAMO_GRAPH_DEPLOYMENTS, to=_namespace_of, when=lambda change: change.new is None),
        TaskRoute(DYNAMO_COMPONENT_DEPLOYMENTS, when=differs(_relevant)),
        TaskRoute(DYNAMO_COMPONENT_DEPLOYMENTS, to=_of_child, when=concerns_graph, after=after_components),
        TaskRoute(DYNAMO_COMPONENT_DEPLOYMENTS, to=other_components, when=lambda change: not change.alters),
        *(TaskRoute(each, to=_namespace_of, when=lambda change: change.new is None) for each in OUTLIVING),
        TaskRoute(DYNAMO_CHECKPOINTS),
        *(TaskRoute(each, when=differs(_relevant)) for each in LEGACY),
        TaskRoute(PODS, when=lambda change: change.new is not None and engine_has_ended(change.new)),
        TaskRoute(PODS, when=lambda change: change.new is not None and bool(lacking(change.new))),
        TaskRoute(PODS, to=partial(_of_pod, cache), when=changes_trouble),
        TaskRoute(PODS, to=rolled, when=lambda change: change.gone is not None),
        TaskRoute(_ADAPTERS, to=scaled, when=is_of_replicas, after=at_once),
        TaskRoute(_ADAPTERS, to=_of_child, when=lambda change: not _is_of_status(change), after=after_pods),
        *(TaskRoute(each, to=_of_child, when=_is_relevant_to_workload, after=after_others) for each in WORKLOADS),
        *(TaskRoute(each, to=_of_child, after=after_children) for each in _CHILDREN),
        *(TaskRoute(each, to=name_waits.waiting(cache), when=lambda change: change.gone is not None) for each in OWNED),
        *(TaskRoute(each, to=sharers, when=_was_shared) for each in SHARED),
        *(TaskRoute(each, to=of_set, when=_is_relevant_to_workload, after=after_children) for each in OF_SETS),
    )


def is_of_replicas(change: CacheChange) -> bool:
    """Whether only the desired replicas of an object changed."""
    old, new = change.old, change.new
    if (
        old is None
        or new is None
        or _relevant_metadata(old) != _relevant_metadata(new)
        or old.get("status") != new.get("status")
    ):
        return False
    before, after = ({**each.get("spec", {}), "replicas": None} for each in (old, new))
    return before == after


def _is_of_status(change: CacheChange) -> bool:
    """Whether only the status of an object changed, or its field managers."""
    old, new = change.old, change.new
    return (
        old is not None
        and new is not None
        and _relevant_metadata(old) == _relevant_metadata(new)
        and old.get("spec") == new.get("spec")
    )


def _changes_spec(change: CacheChange) -> bool:
    """Whether the spec of an existing object changed."""
    old, new = change.old, change.new
    return old is not None and new is not None and old.get("spec") != new.get("spec")


def _outlook_changed(change: CacheChange) -> bool:
    """Whether the number of serving pods of a workload changed, or it became stuck or recovered."""
    return change.resource in _COUNTED and outlook(change.old) != outlook(change.new)


def _is_relevant_to_workload(change: CacheChange) -> bool:
    """Whether more changed than parts of a status that are not read."""
    return not _is_of_status(change) or reported(change.old) != reported(change.new)


def _relevant_metadata(obj: KubeObject) -> KubeObject:
    """Metadata without fields that count changes, and without annotations on an adapter, which belong to their writers."""
    left_out = {"resourceVersion", "generation", "managedFields"}
    if obj.get("kind") == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind:
        left_out.add("annotations")
    return {name: value for name, value in obj["metadata"].items() if name not in left_out}


def _of_child(change: CacheChange) -> Iterable[Task]:
    """The owner of a child, and its previous owner: no other event reports that the child was lost.

    One owner of a co-owned object suffices to correct it. All of them are needed when it is deleted: the first one
    recreates it, and the others become its owners again.
    """
    versions = [each for each in (change.old, change.new) if each is not None]
    owners = [owner for each in versions for owner in _concerned(each, change.new)]
    return dict.fromkeys(task for owner in owners for task in _of_owner(change, owner))


def _concerned(child: KubeObject, now: KubeObject | None) -> Iterator[KubeObject | None]:
    """The first owner of a version of a child, and those that the child no longer has. None stands for "no owner"."""
    owners = owners_of(child)
    present = {each["uid"] for each in owners_of(now)} if now is not None else ()
    yield owners[0] if owners else None
    yield from (each for each in owners[1:] if each["uid"] not in present)


def _of_owner(change: CacheChange, owner: KubeObject | None) -> Iterator[Task]:
    if owner is None:
        # Objects that graphs share have no owner: the namespace's clean-up is reconciled.
        yield from _namespace_of(change)
        return
    for resource in _OWNERS:
        if owner["kind"] == resource.kind:
            yield Task.of(resource, ObjectKey(change.key.namespace, owner["name"]))
    if owner["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
        yield from _graph_of(change)


def _was_shared(change: CacheChange) -> bool:
    """Whether graphs shared an object that was changed or deleted, and so must recreate it. New objects need nothing."""
    return change.old is not None and is_shared(change.old)


def _of_pod(cache: ObjectCache, change: CacheChange) -> Iterator[Task]:
    if component := component_of(cache, change.obj):
        yield Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey(change.key.namespace, component))
    else:
        yield from _graph_of(change)


def _namespace_of(change: CacheChange) -> Iterable[Task]:
    return (Task.of(NAMESPACES, ObjectKey("", change.key.namespace)),)


def _graph_of(change: CacheChange) -> Iterator[Task]:
    if name := objects.labels(change.obj).get(labels.GRAPH_DEPLOYMENT_NAME):
        yield Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(change.key.namespace, name))


def _legacy_of(change: CacheChange) -> Iterator[Task]:
    """The object of a kind before graphs that owns a graph, and the one that owned it before."""
    owners = [objects.controller_of(each) for each in (change.old, change.new) if each is not None]
    tasks = [
        Task.of(resource, ObjectKey(change.key.namespace, owner["name"]))
        for owner in owners
        for resource in LEGACY
        if owner is not None and owner["kind"] == resource.kind
    ]
    yield from dict.fromkeys(tasks)


def _relevant(obj: KubeObject) -> list[Any]:
    """What this service's own status write leaves unchanged."""
    return [obj.get("spec"), *map(obj["metadata"].get, _RELEVANT)]
