"""Which reconciler gets which key when an object changes, and after what delay."""

from collections.abc import Callable
from functools import partial

from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    PODS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.runtime.routes import CacheChange, TaskRoute, differs
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import name_waits
from dynamo_pod_builder.artifact_images import LEGACY
from dynamo_pod_builder.children import OF_SETS, OWNED, SHARED, workload_of
from dynamo_pod_builder.cohorts import engine_has_ended
from dynamo_pod_builder.node_labels import lacking
from dynamo_pod_builder.pods import changes_trouble
from dynamo_pod_builder.reconcilers.namespace import OUTLIVING
from dynamo_pod_builder.routing.changes import concerns_workload, is_of_replicas, is_of_status, relevant, was_shared
from dynamo_pod_builder.routing.delays import Delays
from dynamo_pod_builder.routing.targets import CachedTargets, legacy_of, namespace_of, of_child
from dynamo_pod_builder.status.component import failure_of, is_observed, obstacle_of
from dynamo_pod_builder.status.workload import WORKLOADS, readiness

_ADAPTERS = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
#: Children whose only rule is that their owner is reconciled.
_CHILDREN = frozenset(OWNED) - {DYNAMO_COMPONENT_DEPLOYMENTS, _ADAPTERS, *WORKLOADS}


def routes(
    cache: ObjectCache, debounce: Debounce, progress: Callable[[Resource, ObjectKey], float]
) -> tuple[TaskRoute, ...]:
    """The tasks that changes of graphs, and of their children, trigger. `progress`: see `Delays`."""
    to = CachedTargets(cache)
    wait = Delays(to, debounce, progress)
    graphs, components = DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS
    concerns_graph = partial(_concerns_graph, cache)
    return (
        TaskRoute(graphs, when=differs(relevant)),
        TaskRoute(graphs, to=legacy_of),
        TaskRoute(graphs, to=namespace_of, when=_is_deleted),
        TaskRoute(components, when=differs(relevant)),
        TaskRoute(components, to=of_child, when=concerns_graph, after=wait.after_components),
        TaskRoute(components, to=to.other_components, when=lambda change: not change.alters),
        *(TaskRoute(each, to=namespace_of, when=_is_deleted) for each in OUTLIVING),
        TaskRoute(DYNAMO_CHECKPOINTS),
        *(TaskRoute(each, when=differs(relevant)) for each in LEGACY),
        TaskRoute(PODS, when=lambda change: change.new is not None and engine_has_ended(change.new)),
        TaskRoute(PODS, when=lambda change: change.new is not None and bool(lacking(change.new))),
        TaskRoute(PODS, to=to.of_pod, when=changes_trouble),
        TaskRoute(PODS, to=to.rolled, when=_is_deleted),
        TaskRoute(_ADAPTERS, to=to.scaled, when=is_of_replicas, after=wait.at_once),
        TaskRoute(_ADAPTERS, to=of_child, when=lambda change: not is_of_status(change), after=wait.after_pods),
        *(TaskRoute(each, to=of_child, when=concerns_workload, after=wait.after_workloads) for each in WORKLOADS),
        *(TaskRoute(each, to=of_child, after=wait.after_children) for each in _CHILDREN),
        *(TaskRoute(each, to=name_waits.waiting(cache), when=_is_deleted) for each in OWNED),
        *(TaskRoute(each, to=to.sharers, when=was_shared) for each in SHARED),
        *(TaskRoute(each, to=to.of_set, when=concerns_workload, after=wait.after_children) for each in OF_SETS),
    )


def _is_deleted(change: CacheChange) -> bool:
    return change.new is None


def _concerns_graph(cache: ObjectCache, change: CacheChange) -> bool:
    """Whether a graph reads what changed in a component deployment, whose status repeats what the workload reports."""
    old, new = change.old, change.new
    if old is None or new is None or not is_of_status(change):
        return True
    # The component checks pods in trouble repeatedly, and the graph is reconciled when the result changes.
    if failure_of(old) != failure_of(new) or obstacle_of(old) != obstacle_of(new):
        return True
    # If the workload serves, the graph needs to know whether it runs the present spec. The status itself may have
    # been written before the workload served.
    return is_observed(old) != is_observed(new) and readiness(workload_of(cache, new)).ready
