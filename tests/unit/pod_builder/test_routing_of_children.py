"""A changed child reconciles its owner, its former owner and those that share it, but not for its status alone."""

from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.requeue import OBSERVED_WITHIN
from dynamo_pod_builder.render import MANAGED_BY
from dynamo_pod_builder.routing.delays import CREATED, TOGETHER
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    NAMESPACES,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    ObjectKey,
    Resource,
    controller_reference,
)
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.versions import version_of

from tests.building.objects import stored_object, with_metadata
from tests.unit.routed import routed, tasks_of

from .indexed import PROGRESS, indexed, routes_of

KEY = ObjectKey("ns", "o")
GRAPH = Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "g"))
COMPONENT = Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey("ns", "c"))
NAMESPACE = Task.of(NAMESPACES, ObjectKey("", "ns"))
MANAGED = {labels.APP_MANAGED_BY: MANAGED_BY}


def child(owner: tuple[Resource, str] | None = None, version: int = 1, **metadata: Any) -> KubeObject:
    metadata |= {"name": "o", "namespace": "ns", "uid": "o", "resourceVersion": str(version)}
    if owner is not None:
        metadata["ownerReferences"] = [controller_reference(*owner, owner[1])]
    return {"metadata": metadata, "spec": {}}


def asked(resource: Resource, old: KubeObject | None, new: KubeObject | None) -> set[Task]:
    graphs = (stored_object(DYNAMO_GRAPH_DEPLOYMENTS, "g", each, spec={"components": []}) for each in ("ns", "other"))
    return set(tasks_of(routes_of(indexed(*graphs)), resource, KEY, old, new))


OF_GRAPH = (DYNAMO_GRAPH_DEPLOYMENTS, "g")
OF_COMPONENT = (DYNAMO_COMPONENT_DEPLOYMENTS, "c")


def test_a_component_deployment_that_lost_its_labels_still_reconciles_its_graph() -> None:
    before = child(OF_GRAPH, labels={labels.GRAPH_DEPLOYMENT_NAME: "g", labels.WORKER_HASH: "abc"})
    assert GRAPH in asked(DYNAMO_COMPONENT_DEPLOYMENTS, before, child(OF_GRAPH, 2))


@pytest.mark.parametrize(
    ("resource", "owner", "task"),
    [(SERVICES, OF_GRAPH, GRAPH), (DEPLOYMENTS, OF_COMPONENT, COMPONENT)],
    ids=["of a graph", "of a component"],
)
def test_an_owner_that_loses_a_child_is_reconciled(resource: Resource, owner: tuple[Resource, str], task: Task) -> None:
    assert task in asked(resource, child(owner), child(version=2))
    assert task in asked(resource, child(owner), child((DYNAMO_GRAPH_DEPLOYMENTS, "another"), 2))


def of_model(*owners: str) -> KubeObject:
    references = [controller_reference(DYNAMO_COMPONENT_DEPLOYMENTS, each, each) for each in owners]
    spec = {"selector": {labels.BASE_MODEL_HASH: "abc"}}
    return {"kind": "Service", **child(version=len(owners) + 1, ownerReferences=references), "spec": spec}


@pytest.mark.parametrize(
    ("old", "new", "owners"),
    [
        pytest.param(of_model("a", "b", "c"), None, {"a", "b", "c"}, id="all owners recreate it"),
        pytest.param(of_model("a", "b", "c"), of_model("b", "c"), {"a", "b"}, id="one owner left"),
        pytest.param(of_model("a"), of_model("a", "b"), {"a"}, id="one owner joined: the others have nothing to do"),
    ],
)
def test_owners_of_a_models_service_are_reconciled(old: KubeObject, new: KubeObject | None, owners: set[str]) -> None:
    reconciled = {task.key.name for task in asked(SERVICES, old, new) if task.concern == COMPONENT.concern}
    assert reconciled == owners


@pytest.mark.parametrize(
    ("before", "after", "wait"),
    [
        pytest.param(None, child(OF_COMPONENT), CREATED, id="created"),
        pytest.param(child(OF_COMPONENT), {**child(OF_COMPONENT, 2), "spec": {"a": 1}}, 0.0, id="someone changed it"),
        pytest.param(child(OF_COMPONENT), None, 0.0, id="gone"),
    ],
)
@pytest.mark.parametrize("resource", [SERVICES, DEPLOYMENTS], ids=lambda each: each.plural)
def test_reports_of_children_are_debounced_and_corrections_are_immediate(
    resource: Resource, before: KubeObject | None, after: KubeObject | None, wait: float
) -> None:
    tasks = routed(routes_of(indexed()), resource, KEY, before, after)
    assert tasks == [(COMPONENT, wait)]


def test_a_created_child_is_reported_when_its_controller_reports() -> None:
    """After a minute at the latest. Children that others created are reconciled at once."""
    cache, created = indexed(), {**child(OF_COMPONENT), "kind": DEPLOYMENTS.kind}
    cache.put(DEPLOYMENTS, created)
    assert routed(routes_of(cache), DEPLOYMENTS, KEY, None, created) == [(COMPONENT, OBSERVED_WITHIN)]
    cache.confirm(DEPLOYMENTS, KEY, version_of(created))
    assert routed(routes_of(cache), DEPLOYMENTS, KEY, None, created) == [(COMPONENT, CREATED)]


def test_a_created_child_may_arrive_from_state_before_the_answer_of_its_create() -> None:
    cache, created = indexed(), {**child(OF_COMPONENT), "kind": SERVICES.kind}
    with cache.writing(SERVICES, KEY):
        assert routed(routes_of(cache), SERVICES, KEY, None, created) == [(COMPONENT, OBSERVED_WITHIN)]
    assert routed(routes_of(cache), SERVICES, KEY, None, created) == [(COMPONENT, CREATED)]


@pytest.mark.parametrize("resource", [SERVICES, DEPLOYMENTS], ids=lambda each: each.plural)
def test_a_child_that_this_service_changed_needs_no_second_reconcile(resource: Resource) -> None:
    """The reconcile that changed it has the answer. Changes by others are corrected at once."""
    cache, before = indexed(), {**child(OF_COMPONENT), "kind": resource.kind}
    changed, again = ({**child(OF_COMPONENT, version), "kind": resource.kind, "spec": {"a": 1}} for version in (2, 3))
    cache.put(resource, changed)
    assert routed(routes_of(cache), resource, KEY, before, changed) == [(COMPONENT, OBSERVED_WITHIN)]
    cache.take(resource, KEY, again, version_of(again))
    assert routed(routes_of(cache), resource, KEY, before, again) == [(COMPONENT, 0.0)]


def test_a_change_by_others_is_corrected_at_once_although_an_own_write_has_no_answer_or_confirmation() -> None:
    cache, before = indexed(), {**child(OF_COMPONENT), "kind": SERVICES.kind}
    changed, again = ({**before, **child(OF_COMPONENT, version), "spec": {"a": version}} for version in (2, 3))
    with cache.writing(SERVICES, KEY):
        assert routed(routes_of(cache), SERVICES, KEY, before, changed) == [(COMPONENT, 0.0)]
    cache.put(SERVICES, changed)
    assert routed(routes_of(cache), SERVICES, KEY, changed, again) == [(COMPONENT, 0.0)]


def deployment(generation: int = 1, **status: Any) -> KubeObject:
    obj = child(OF_COMPONENT, generation=1)
    status = {"observedGeneration": generation, "replicas": 2, "updatedReplicas": 2, **status}
    return {**obj, "kind": DEPLOYMENTS.kind, "spec": {"replicas": 2}, "status": status}


def test_serving_pods_are_reported_soon_even_if_this_service_changed_their_workload() -> None:
    cache, before = indexed(), deployment(availableReplicas=1)
    after = {**with_metadata(deployment(availableReplicas=2), resourceVersion="2"), "spec": {"replicas": 2, "a": 1}}
    cache.put(DEPLOYMENTS, after)
    assert routed(routes_of(cache), DEPLOYMENTS, KEY, before, after) == [(COMPONENT, TOGETHER)]


def annotated(obj: KubeObject) -> KubeObject:
    return with_metadata(obj, annotations={"deployment.kubernetes.io/revision": "1"})


@pytest.mark.parametrize(
    ("old", "new", "wait"),
    [
        pytest.param(deployment(0), deployment(), PROGRESS, id="observed"),
        pytest.param(deployment(updatedReplicas=1), deployment(), PROGRESS, id="one more pod"),
        pytest.param(deployment(), deployment(readyReplicas=1), TOGETHER, id="one more is ready"),
        pytest.param(deployment(), deployment(availableReplicas=1), TOGETHER, id="one more serves"),
        pytest.param(deployment(availableReplicas=2), deployment(availableReplicas=1), TOGETHER, id="one less serves"),
        pytest.param(
            deployment(),
            deployment(conditions=[{"type": "ReplicaFailure", "status": "True", "reason": "F", "message": "quota"}]),
            TOGETHER,
            id="it cannot go on",
        ),
        pytest.param(deployment(), deployment(collisionCount=1), None, id="what no one reads"),
        pytest.param(deployment(), annotated(deployment()), CREATED, id="an annotation of its controller"),
        pytest.param(deployment(0), annotated(deployment(0)), OBSERVED_WITHIN, id="which has more to say at once"),
    ],
)
def test_serving_changes_and_failures_are_reported_soon_and_progress_is_debounced(
    old: KubeObject, new: KubeObject, wait: float | None
) -> None:
    tasks = routed(routes_of(indexed()), DEPLOYMENTS, KEY, old, new)
    assert tasks == ([] if wait is None else [(COMPONENT, wait)])


def component(generation: int, *, available: str, reason: str = "DeploymentNotReady", message: str = "") -> KubeObject:
    condition = {"type": "Available", "status": available, "reason": reason, "message": message}
    status = {"observedGeneration": generation, "conditions": [condition]}
    return {**child(OF_GRAPH, generation=2), "kind": DYNAMO_COMPONENT_DEPLOYMENTS.kind, "status": status}


STARTS, SERVES = component(2, available="False"), component(2, available="True")
TAKEN = component(2, available="False", reason="NameTaken")
CRASHES = component(2, available="False", reason="CrashLoopBackOff", message="exited with code 1")


@pytest.mark.parametrize(
    ("old", "new", "concerned"),
    [
        pytest.param(component(1, available="False"), STARTS, False, id="progress"),
        pytest.param(STARTS, component(2, available="False", message="1 of 2"), False, id="more progress"),
        pytest.param(STARTS, SERVES, False, id="it serves"),
        pytest.param(STARTS, TAKEN, True, id="it failed"),
        pytest.param(TAKEN, STARTS, True, id="it no longer fails"),
        pytest.param(STARTS, CRASHES, True, id="its pods are in trouble"),
        pytest.param(
            CRASHES,
            component(2, available="False", reason="ImagePullBackOff", message="no such image"),
            True,
            id="in another one",
        ),
    ],
)
def test_a_graph_is_reconciled_for_a_components_status_only_if_its_workload_does_not_report_it(
    old: KubeObject, new: KubeObject, concerned: bool
) -> None:
    tasks = routed(routes_of(indexed()), DYNAMO_COMPONENT_DEPLOYMENTS, KEY, old, new)
    assert tasks == ([(GRAPH, TOGETHER)] if concerned else [])


@pytest.mark.parametrize("available", ["True", "False"])
@pytest.mark.parametrize("serving", [1, 2])
def test_an_observed_spec_reconciles_the_graph_if_the_workload_already_serves(available: str, serving: int) -> None:
    """Availability in the status does not count: it may be older than the workload's, and arrive later."""
    cache = indexed()
    workload = deployment(
        availableReplicas=serving, readyReplicas=serving, conditions=[{"type": "Available", "status": "True"}]
    )
    reference = {**workload["metadata"]["ownerReferences"][0], "name": "o", "uid": "o"}
    cache.put(DEPLOYMENTS, with_metadata(workload, ownerReferences=[reference]))
    tasks = routed(
        routes_of(cache),
        DYNAMO_COMPONENT_DEPLOYMENTS,
        KEY,
        component(1, available="False"),
        component(2, available=available),
    )
    assert tasks == ([(GRAPH, TOGETHER)] if serving == 2 else [])


@pytest.mark.parametrize("resource", [SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS], ids=lambda each: each.plural)
def test_deleted_shared_objects_reconcile_the_graphs_that_create_them(resource: Resource) -> None:
    """Without its account no pod of a planner starts."""
    assert asked(resource, child(labels=MANAGED), None) == {NAMESPACE, GRAPH}
    assert asked(resource, child(labels=MANAGED), child(version=2)) == {NAMESPACE, GRAPH}
    assert asked(resource, None, child(labels=MANAGED)) == {NAMESPACE}
    assert asked(resource, child(), None) == {NAMESPACE}


@pytest.mark.parametrize("resource", [DYNAMO_COMPONENT_DEPLOYMENTS, POD_CLIQUE_SETS], ids=lambda each: each.plural)
def test_the_last_deleted_workload_reconciles_the_shared_objects_of_its_namespace(resource: Resource) -> None:
    assert NAMESPACE in asked(resource, child(OF_GRAPH), None)
    assert NAMESPACE not in asked(resource, None, child(OF_GRAPH))


@pytest.mark.parametrize("owner", [(POD_CLIQUE_SETS, "set"), (POD_CLIQUE_SCALING_GROUPS, "group")])
def test_cliques_of_a_set_reconcile_its_graph(owner: tuple[Resource, str]) -> None:
    cache = indexed()
    for resource, name, of in (
        (POD_CLIQUE_SETS, "set", OF_GRAPH),
        (POD_CLIQUE_SCALING_GROUPS, "group", (POD_CLIQUE_SETS, "set")),
    ):
        made = child(of)
        made["metadata"]["name"] = name
        cache.put(resource, made)
    assert tasks_of(routes_of(cache), POD_CLIQUES, KEY, None, child(owner)) == [GRAPH]
