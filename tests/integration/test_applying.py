"""The applier on a real API server: objects are created, corrected, replaced, or refused."""

from typing import Any

import pytest
from dynamo_pod_builder.applier import Applier, ChildChange
from dynamo_pod_builder.errors import NameTaken
from dynamo_pod_builder.render import MANAGED_BY
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    SERVICES,
    ObjectKey,
    controller_reference,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Conflict
from dynamo_shared.state import ObjectCache

from tests.building.objects import object_of


@pytest.fixture
def applier(kube: KubeClient) -> Applier:
    return Applier(kube.acting_as("dynamo-pod-builder"), ObjectCache())


def account(namespace: str, **object_labels: str) -> dict[str, Any]:
    return object_of(SERVICE_ACCOUNTS, "shared", namespace, labels={labels.APP_MANAGED_BY: MANAGED_BY, **object_labels})


def binding(namespace: str, role: str) -> dict[str, Any]:
    metadata = {"name": "shared", "namespace": namespace, "labels": {labels.APP_MANAGED_BY: MANAGED_BY}}
    subjects = [{"kind": "ServiceAccount", "name": "shared", "namespace": namespace}]
    role_ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return {**ROLE_BINDINGS.type_meta, "metadata": metadata, "subjects": subjects, "roleRef": role_ref}


def deployment(namespace: str, replicas: int) -> dict[str, Any]:
    pod = {
        "metadata": {"labels": {"app": "worker"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/worker:1"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "worker"}}, "template": pod}
    return object_of(DEPLOYMENTS, "worker", namespace, labels={labels.APP_MANAGED_BY: MANAGED_BY}, spec=spec)


async def test_a_label_that_is_no_longer_desired_is_removed_and_those_of_others_stay(applier, kube, namespace):
    key = ObjectKey(namespace, "shared")
    await applier.ensure(account(namespace, own="1"))
    await kube.merge_patch(SERVICE_ACCOUNTS, key, {"metadata": {"labels": {"theirs": "1"}}})
    assert (await applier.ensure(account(namespace))).change is ChildChange.UPDATED
    object_labels = (await kube.get(SERVICE_ACCOUNTS, key))["metadata"]["labels"]
    assert object_labels == {labels.APP_MANAGED_BY: MANAGED_BY, "theirs": "1"}


async def test_a_binding_to_another_role_is_recreated(applier, kube, namespace):
    """Kubernetes does not allow changing the role of a binding."""
    before = (await applier.ensure(binding(namespace, "one"))).obj
    assert (await applier.ensure(binding(namespace, "two"))).change is ChildChange.UPDATED
    after = await kube.get(ROLE_BINDINGS, ObjectKey(namespace, "shared"))
    assert after["roleRef"]["name"] == "two"
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.parametrize("outdated", [False, True])
async def test_scaling_writes_only_replicas_and_caches_the_stored_object(applier, kube, namespace, outdated):
    key = ObjectKey(namespace, "worker")
    observed = (await applier.ensure(deployment(namespace, 1))).obj
    if outdated:
        await kube.merge_patch(DEPLOYMENTS, key, {"metadata": {"labels": {"theirs": "1"}}})
    scaled = (await applier.ensure(deployment(namespace, 4))).obj
    there = await kube.get(DEPLOYMENTS, key)
    assert scaled["spec"]["replicas"] == there["spec"]["replicas"] == 4
    assert there["metadata"]["generation"] == observed["metadata"]["generation"] + 1
    assert scaled["spec"] == there["spec"]
    assert scaled["metadata"]["generation"] == there["metadata"]["generation"]
    assert (await applier.ensure(deployment(namespace, 4))).change is ChildChange.UNCHANGED


async def test_an_object_that_someone_created_meanwhile_is_not_overwritten(applier, kube, namespace):
    theirs = account(namespace)
    del theirs["metadata"]["labels"]
    before = await kube.create(SERVICE_ACCOUNTS, theirs)
    with pytest.raises(NameTaken, match="ServiceAccount named 'shared' exists already and has no known owner"):
        await applier.ensure(account(namespace))
    now = await kube.get(SERVICE_ACCOUNTS, ObjectKey(namespace, "shared"))
    assert now["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_a_deletion_does_not_delete_a_recreated_object(applier, kube, namespace):
    key = ObjectKey(namespace, "shared")
    first = (await applier.ensure(account(namespace))).obj
    await kube.delete(SERVICE_ACCOUNTS, key)
    second = await kube.create(SERVICE_ACCOUNTS, account(namespace))
    await applier.delete(SERVICE_ACCOUNTS, first)
    assert (await kube.get(SERVICE_ACCOUNTS, key))["metadata"]["uid"] == second["metadata"]["uid"]


async def test_a_deleted_object_leaves_the_cache_before_its_watch_event_arrives(kube, namespace):
    cache = ObjectCache()
    applier = Applier(kube, cache)
    made = (await applier.ensure(account(namespace))).obj
    key = ObjectKey(namespace, "shared")
    assert cache.get(SERVICE_ACCOUNTS, key) is not None
    await applier.delete(SERVICE_ACCOUNTS, made)
    assert cache.get(SERVICE_ACCOUNTS, key) is None
    assert not cache.put(SERVICE_ACCOUNTS, made), "late news brings it back"


def service(namespace: str, owner: dict[str, Any]) -> dict[str, Any]:
    name = owner["metadata"]["name"]
    owners = [controller_reference(SERVICE_ACCOUNTS, name, owner["metadata"]["uid"])]
    spec = {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}], "selector": {"app": name}}
    return object_of(SERVICES, "moving", namespace, ownerReferences=owners, spec=spec)


async def owners(kube: KubeClient, namespace: str, *names: str) -> list[dict[str, Any]]:
    return [await kube.create(SERVICE_ACCOUNTS, object_of(SERVICE_ACCOUNTS, name, namespace)) for name in names]


async def test_an_object_moves_to_a_new_owner_of_the_same_family_without_recreation(applier, kube, namespace):
    old, new, stranger = await owners(kube, namespace, "old", "new", "stranger")
    before = (await applier.ensure(service(namespace, old))).obj
    with pytest.raises(NameTaken) as refused:
        await applier.ensure(service(namespace, new), {stranger["metadata"]["uid"]})
    assert refused.value.holder_uid == old["metadata"]["uid"]
    assert (await applier.ensure(service(namespace, new), {old["metadata"]["uid"]})).change is ChildChange.UPDATED
    after = await kube.get(SERVICES, ObjectKey(namespace, "moving"))
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["clusterIP"] == before["spec"]["clusterIP"]
    assert after["spec"]["selector"] == {"app": "new"}
    assert [each["name"] for each in after["metadata"]["ownerReferences"]] == ["new"]
    assert (await applier.ensure(service(namespace, new))).change is ChildChange.UNCHANGED


async def test_an_object_that_changed_after_the_read_keeps_its_owner(kube, namespace):
    old, new = await owners(kube, namespace, "old", "new")
    cache = ObjectCache()
    applier = Applier(kube, cache)
    await applier.ensure(service(namespace, old))
    await kube.merge_patch(SERVICES, ObjectKey(namespace, "moving"), {"metadata": {"labels": {"changed": "yes"}}})
    with pytest.raises(Conflict):
        await applier.ensure(service(namespace, new), {old["metadata"]["uid"]})


async def test_a_deleted_or_forged_owner_does_not_exist_and_leaves_the_cache(kube, namespace):
    cache = ObjectCache()
    applier = Applier(kube, cache)
    (owner,) = await owners(kube, namespace, "owner")
    forged = {**owner, "metadata": {**owner["metadata"], "uid": "forged"}}
    ghost = {**owner, "metadata": {**owner["metadata"], "name": "ghost", "uid": "ghost"}}
    for each in (ghost, owner):
        cache.put(SERVICE_ACCOUNTS, each)
    assert [await applier.exists(each) for each in (owner, ghost, forged)] == [True, False, False]
    assert cache.get(SERVICE_ACCOUNTS, ObjectKey(namespace, "ghost")) is None
    assert cache.get(SERVICE_ACCOUNTS, ObjectKey(namespace, "owner")) is not None
