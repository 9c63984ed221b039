"""A graph or a component that another object's name keeps from being created is tried again when that object goes."""

from typing import Any

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

from tests.unit.routed import tasks_of

from .indexed import indexed, routes_of

KEY = ObjectKey("ns", "theirs")
NAMESPACE = ObjectKey("", "ns")
THEIRS: KubeObject = {"metadata": {"name": "theirs", "namespace": "ns", "uid": "t", "resourceVersion": "9"}}


def _available(reason: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Available", "status": "False", "reason": reason}]}


@pytest.fixture
def cache() -> ObjectCache:
    result = indexed()

    def put(resource: Resource, name: str, status: dict[str, Any], namespace: str = "ns") -> None:
        metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "resourceVersion": "1"}
        result.put(resource, {"metadata": metadata, "spec": {}, "status": status})

    put(DYNAMO_GRAPH_DEPLOYMENTS, "failed", {"state": "failed"})
    put(DYNAMO_GRAPH_DEPLOYMENTS, "elsewhere", {"state": "failed"}, "other")
    put(DYNAMO_GRAPH_DEPLOYMENTS, "fine", {"state": "successful"})
    put(DYNAMO_GRAPH_DEPLOYMENTS, "new", {})
    put(DYNAMO_COMPONENT_DEPLOYMENTS, "waits", _available("NameTaken"))
    put(DYNAMO_COMPONENT_DEPLOYMENTS, "refused", _available("RefusedByApiServer"))
    return result


@pytest.mark.parametrize("resource", [SERVICES, DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS])
def test_what_goes_wakes_who_may_wait_for_its_name(cache: ObjectCache, resource: Resource) -> None:
    woken = set(tasks_of(routes_of(cache), resource, KEY, THEIRS, None))
    assert {each for each in woken if each.key != NAMESPACE} == {
        Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "failed")),
        Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey("ns", "waits")),
    }


def test_what_comes_or_changes_wakes_no_one(cache: ObjectCache) -> None:
    pace = routes_of(cache)
    for change in ((None, THEIRS), (THEIRS, {**THEIRS, "spec": {"x": 1}})):
        assert {task.key for task in tasks_of(pace, SERVICES, KEY, *change)} == {NAMESPACE}
