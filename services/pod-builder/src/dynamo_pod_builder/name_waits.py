"""Graphs and components that wait because another object has one of their names: retried when it is deleted."""

from collections.abc import Callable, Iterable

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.runtime.routes import CacheChange, indexed, namespace_of
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder.status.component import AVAILABLE
from dynamo_pod_builder.status.graph import FAILED

_WAITING = "waits-for-a-name"
_TAKEN = "NameTaken"


def index(cache: ObjectCache) -> None:
    """Index waiting objects by their namespace: usually there are none."""
    cache.add_index(DYNAMO_GRAPH_DEPLOYMENTS, _WAITING, _graph_waits)
    cache.add_index(DYNAMO_COMPONENT_DEPLOYMENTS, _WAITING, _component_waits)


def waiting(cache: ObjectCache) -> Callable[[CacheChange], Iterable[Task]]:
    """Objects that may wait for this name: all failed graphs, because a graph's status does not say why it failed."""
    return indexed(cache, _WAITING, DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS, by=namespace_of)


def _graph_waits(graph: KubeObject) -> Iterable[str]:
    return (objects.namespace(graph),) if graph.get("status", {}).get("state") == FAILED else ()


def _component_waits(component: KubeObject) -> Iterable[str]:
    available = objects.condition(component, AVAILABLE) or {}
    return (objects.namespace(component),) if available.get("reason") == _TAKEN else ()
