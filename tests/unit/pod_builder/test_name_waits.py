"""A graph or component that cannot be created because its name is taken is retried when the name becomes free."""

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    SERVICES,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache

from tests.building.objects import stored_object
from tests.unit.routed import tasks_of

from .indexed import indexed, routes_of

KEY = ObjectKey("ns", "theirs")
NAMESPACE = ObjectKey("", "ns")
THEIRS: KubeObject = {"metadata": {"name": "theirs", "namespace": "ns", "uid": "t", "resourceVersion": "9"}}


@pytest.fixture
def cache() -> ObjectCache:
    def graph(name: str, state: str, namespace: str = "ns") -> KubeObject:
        return stored_object(DYNAMO_GRAPH_DEPLOYMENTS, name, namespace, spec={}, status={"state": state})

    def component(name: str, reason: str) -> KubeObject:
        status = {"conditions": [{"type": "Available", "status": "False", "reason": reason}]}
        return stored_object(DYNAMO_COMPONENT_DEPLOYMENTS, name, spec={}, status=status)

    graphs = graph("failed", "failed"), graph("elsewhere", "failed", "other"), graph("fine", "successful")
    new = stored_object(DYNAMO_GRAPH_DEPLOYMENTS, "new", spec={}, status={})
    return indexed(*graphs, new, component("waits", "NameTaken"), component("refused", "RefusedByApiServer"))


@pytest.mark.parametrize("resource", [SERVICES, DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS])
def test_a_deleted_object_reconciles_those_that_may_wait_for_its_name(cache: ObjectCache, resource: Resource) -> None:
    woken = set(tasks_of(routes_of(cache), resource, KEY, THEIRS, None))
    assert {each for each in woken if each.key != NAMESPACE} == {
        Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "failed")),
        Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey("ns", "waits")),
    }


def test_created_and_changed_objects_reconcile_none_that_wait_for_a_name(cache: ObjectCache) -> None:
    pace = routes_of(cache)
    for change in ((None, THEIRS), (THEIRS, {**THEIRS, "spec": {"x": 1}})):
        assert {task.key for task in tasks_of(pace, SERVICES, KEY, *change)} == {NAMESPACE}
