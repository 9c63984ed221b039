"""A change of replicas alone: first the pods, then rendering and reports, later if very many change at once."""

from typing import Any

import pytest
from dynamo_pod_builder.routing.delays import CREATED, SETTLE
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    NAMESPACES,
    ObjectKey,
    Resource,
    controller_reference,
)
from dynamo_shared.runtime.debounce import FEW
from dynamo_shared.runtime.routes import TaskRoute
from dynamo_shared.runtime.tasks import Task

from tests.building.objects import stored_object
from tests.unit.routed import routed

from .indexed import indexed, routes_of

ADAPTERS = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
KEY = ObjectKey("ns", "g-w")
GRAPH = Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "g"))


def owned(resource: Resource, name: str, owner: Resource, of: str, **more: Any) -> KubeObject:
    own_labels = {labels.COMPONENT: "W", labels.GRAPH_DEPLOYMENT_NAME: "g"}
    references = [controller_reference(owner, of, of)]
    return stored_object(resource, name, uid=name, labels=own_labels, ownerReferences=references, **more)


def adapter(replicas: int, **more: Any) -> KubeObject:
    spec = {"dgdRef": {"name": "g", "componentName": "W"}, "replicas": replicas}
    return owned(ADAPTERS, "g-w", DYNAMO_GRAPH_DEPLOYMENTS, "g", spec=spec, **more)


def workload(replicas: int) -> KubeObject:
    return owned(DEPLOYMENTS, "g-w-abc", DYNAMO_COMPONENT_DEPLOYMENTS, "g-w-abc", spec={"replicas": replicas})


@pytest.fixture
def rows() -> tuple[TaskRoute, ...]:
    spec = {"components": [{"name": "W", "scalingAdapter": {}}]}
    graph = stored_object(DYNAMO_GRAPH_DEPLOYMENTS, "g", uid="g", spec=spec)
    component = owned(DYNAMO_COMPONENT_DEPLOYMENTS, "g-w-abc", DYNAMO_GRAPH_DEPLOYMENTS, "g", spec={})
    return routes_of(indexed(graph, component, adapter(2)))


def test_the_workload_gets_the_number_of_its_adapter_before_the_graph_is_rendered(rows: tuple[TaskRoute, ...]) -> None:
    at_once = (Task.of(ADAPTERS, ObjectKey("ns", "g-w-abc")), 0.0)
    assert routed(rows, ADAPTERS, KEY, adapter(1), adapter(2)) == [at_once, (GRAPH, SETTLE)]
    for _ in range(FEW):
        many = routed(rows, ADAPTERS, KEY, adapter(1), adapter(2))
    assert many[0] == at_once
    assert many[1][1] > SETTLE


def test_changed_pod_counts_are_debounced(rows: tuple[TaskRoute, ...]) -> None:
    component = Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey("ns", "g-w-abc"))
    key = ObjectKey("ns", "g-w-abc")
    assert routed(rows, DEPLOYMENTS, key, workload(1), workload(2)) == [(component, SETTLE), (GRAPH, SETTLE)]


def test_other_changes_of_an_adapter_are_not_debounced(rows: tuple[TaskRoute, ...]) -> None:
    assert routed(rows, ADAPTERS, KEY, None, adapter(1)) == [(GRAPH, 0.0)]
    assert routed(rows, ADAPTERS, KEY, adapter(1), None) == [(GRAPH, 0.0)]
    assert routed(rows, ADAPTERS, KEY, adapter(1), adapter(1, status={"replicas": 1})) == []


def test_a_created_or_deleted_generation_reconciles_the_others_of_its_component(rows: tuple[TaskRoute, ...]) -> None:
    next_one = owned(DYNAMO_COMPONENT_DEPLOYMENTS, "g-w-def", DYNAMO_GRAPH_DEPLOYMENTS, "g", spec={})
    own = Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey("ns", "g-w-def"))
    other = Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey("ns", "g-w-abc"))
    key = ObjectKey("ns", "g-w-def")
    namespace = (Task.of(NAMESPACES, ObjectKey("", "ns")), 0.0)
    for old, new, wait, rest in ((None, next_one, CREATED, []), (next_one, None, 0.0, [namespace])):
        expected = [(own, 0.0), (GRAPH, wait), (other, 0.0), *rest]
        assert routed(rows, DYNAMO_COMPONENT_DEPLOYMENTS, key, old, new) == expected
    written = {**next_one, "status": {"conditions": []}}
    assert routed(rows, DYNAMO_COMPONENT_DEPLOYMENTS, key, next_one, written) == [], "the graph reads its workload"
