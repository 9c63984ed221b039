"""Changes of an object that reconcile it: all except the status that the platform writes itself."""

from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime.tasks import Task

from tests.unit.routed import tasks_of

from .indexed import indexed, routes_of

KEY = ObjectKey("ns", "o")
KINDS = (DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_DEPLOYMENTS)


def observed(version: int, generation: int, spec: Any, **more: Any) -> KubeObject:
    metadata = {"name": "o", "namespace": "ns", "uid": "o", "generation": generation, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": spec, **more}


def asked(resource: Resource, old: KubeObject | None, new: KubeObject | None) -> bool:
    return Task.of(resource, KEY) in tasks_of(routes_of(indexed()), resource, KEY, old, new)


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: each.plural)
def test_a_spec_that_was_changed_and_changed_back_is_reconciled(resource: Resource) -> None:
    """STATE may have only the first and the last version, and the status must name the last one's generation."""
    first, last = observed(1, 1, {"replicas": 1}), observed(3, 3, {"replicas": 1})
    assert asked(resource, first, last)


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: each.plural)
def test_a_changed_spec_is_reconciled_whatever_its_generation(resource: Resource) -> None:
    """A cluster that was restored from a backup counts generations from the start."""
    assert asked(resource, observed(1, 2, {"replicas": 1}), observed(3, 2, {"replicas": 2}))
    assert asked(resource, None, observed(1, 1, {}))
    assert asked(resource, observed(1, 1, {}), None)


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: each.plural)
def test_a_changed_annotation_is_reconciled(resource: Resource) -> None:
    before, after = observed(1, 1, {}), observed(2, 1, {})
    after["metadata"]["annotations"] = {"nvidia.com/enable-metrics": "false"}
    assert asked(resource, before, after)


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: each.plural)
def test_a_changed_status_is_not_reconciled(resource: Resource) -> None:
    assert not asked(resource, observed(1, 1, {}), observed(2, 1, {}, status={"observedGeneration": 1}))


def test_a_graph_also_reconciles_its_former_owner() -> None:
    """If it was taken from that owner, no other change reports it."""
    owner = {"kind": DYNAMO_DEPLOYMENTS.kind, "name": "former", "uid": "u", "controller": True}
    free = observed(2, 1, {})
    owned = {**free, "metadata": {**free["metadata"], "ownerReferences": [owner]}}
    former = Task.of(DYNAMO_DEPLOYMENTS, ObjectKey("ns", "former"))
    for old, new in ((owned, free), (owned, None), (free, owned), (owned, owned)):
        asked_for = tasks_of(routes_of(indexed()), DYNAMO_GRAPH_DEPLOYMENTS, KEY, old, new)
        assert asked_for.count(former) == 1
