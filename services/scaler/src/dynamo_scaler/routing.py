"""Which graph to reconcile after a change, and how soon."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import is_active
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    PODS,
    SCALED_OBJECTS,
    ObjectKey,
)
from dynamo_shared.api.scale_targets import scaled_adapter
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.runtime.routes import CacheChange, TaskRoute
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state import ObjectCache

from dynamo_scaler.autoscaling.health import trouble_reason
from dynamo_scaler.reconcilers.adapters import BY_GRAPH

#: Debounce: several adapters of a graph that change together become one write. Seconds.
SETTLE = 0.02
#: Debounce: pods come and go in groups, and only their count is reported. Seconds.
SETTLE_PODS = 0.2


def routes(cache: ObjectCache, debounce: Debounce) -> tuple[TaskRoute, ...]:
    """The graph of a change, with a delay: changes that come together become one write.

    Changes of pod counts are relevant only for graphs with adapters.
    """

    def counted(change: CacheChange) -> Iterator[Task]:
        return (task for task in _labelled(change) if _has_adapters(cache, task.key))

    return (
        TaskRoute(
            DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
            to=lambda change: (_task(graph_of(change.obj)),),
            when=lambda change: not _same(change, "spec", "ownerReferences", "deletionTimestamp"),
            # Later if very many adapters change at once.
            after=lambda _: SETTLE + debounce.after_one_more(),
        ),
        TaskRoute(
            DYNAMO_GRAPH_DEPLOYMENTS,
            to=lambda change: (_task(change.key),),
            when=lambda change: (
                not _same(change, "spec", "annotations", "deletionTimestamp")
                or (_counts(change.old) != _counts(change.new) and _has_adapters(cache, change.key))
            ),
            after=SETTLE,
        ),
        TaskRoute(
            PODS, to=counted, when=lambda change: _counted(change.old) != _counted(change.new), after=SETTLE_PODS
        ),
        *(
            TaskRoute(
                each,
                to=partial(_scaled, cache),
                # Only the part of its status that the adapter repeats; it changes together with pods.
                when=lambda change: (
                    not _same(change, "spec", "labels", "annotations")
                    or trouble_reason(change.old) != trouble_reason(change.new)
                ),
                after=lambda change: SETTLE_PODS if _same(change, "spec", "labels", "annotations") else 0.0,
            )
            for each in (HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS)
        ),
    )


def graph_of(adapter: KubeObject) -> ObjectKey:
    """The graph of an adapter, whose adapters are reconciled together."""
    return ObjectKey(adapter["metadata"]["namespace"], adapter["spec"]["dgdRef"]["name"])


def _task(graph: ObjectKey) -> Task:
    return Task.of(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, graph)


def _has_adapters(cache: ObjectCache, graph: ObjectKey) -> bool:
    # Users may make thousands of one graph, which are kept packed.
    return bool(cache.keys_by_index(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, BY_GRAPH, str(graph)))


def _labelled(change: CacheChange) -> Iterator[Task]:
    """The graph of an object's label; if another client changed the label, the previous graph, too."""
    graphs = (objects.labels(each).get(labels.GRAPH_DEPLOYMENT_NAME) for each in (change.old, change.new) if each)
    for graph in dict.fromkeys(filter(None, graphs)):
        yield _task(ObjectKey(change.key.namespace, graph))


def _scaled(cache: ObjectCache, change: CacheChange) -> Iterator[Task]:
    """The graph of an autoscaler's label, and the graph of the adapter that it scales: a user's own autoscaler has no
    label.
    """
    tasks = dict.fromkeys(_labelled(change))
    for each in filter(None, (change.old, change.new)):
        key = ObjectKey(change.key.namespace, scaled_adapter(each))
        adapter = cache.get(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, key)
        if adapter is not None:
            tasks[_task(graph_of(adapter))] = None
    yield from tasks


def _counted(pod: KubeObject | None) -> tuple[str | None, ...] | None:
    """The graph and the component for which a pod counts; None if it does not count."""
    if pod is None or not is_active(pod):
        return None
    return tuple(objects.labels(pod).get(label) for label in (labels.GRAPH_DEPLOYMENT_NAME, labels.COMPONENT))


def _same(change: CacheChange, *parts: str) -> bool:
    """Whether these parts of the object or of its metadata are unchanged."""
    old, new = change.old, change.new
    if old is None or new is None or old["metadata"].get("uid") != new["metadata"].get("uid"):
        return False
    return all(
        old.get(part) == new.get(part) and old["metadata"].get(part) == new["metadata"].get(part) for part in parts
    )


def _counts(graph: KubeObject | None) -> Any:
    """The replicas in the graph's own status: the only count of components without pods of their own."""
    return ((graph or {}).get("status") or {}).get("components")
