"""What an answer of the API server means for the cached object: the cache forgets only objects that are gone."""

from typing import Any, cast

import pytest
from dynamo_pod_builder.applier import Applier, ChildChange
from dynamo_pod_builder.co_owners import owns
from dynamo_pod_builder.errors import NameTaken
from dynamo_pod_builder.render.network.service import model_service
from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.labels import BASE_MODEL_HASH
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    SERVICES,
    ObjectKey,
    Resource,
    controller_reference,
)
from dynamo_shared.kube.errors import Conflict, NotServed, Unavailable
from dynamo_shared.kube.overruled import LEFT_ALONE
from dynamo_shared.kube.stamps import stamped
from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.state.versions import version_of

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube
from tests.building.objects import copied, object_of
from tests.unit.render.building import component, graph_children

from .graph.building import stored, stored_graph

CHILD = next(each for each in graph_children(stored_graph(component())) if each["kind"] == "ServiceAccount")
RESOURCE, KEY = resources.of(CHILD), resources.key_of(CHILD)


def drifted() -> KubeObject:
    """The child as stored, without one of its desired labels."""
    there = stored(stamped(CHILD))
    return {**there, "metadata": {**there["metadata"], "labels": {}}}


def applier(kube: MemoryKube, there: KubeObject) -> tuple[Applier, ObjectCache]:
    cache, client = ObjectCache(), cast("Any", kube)
    cache.take(RESOURCE, KEY, there, version_of(there))
    return Applier(client, cache), cache


async def test_a_write_conflict_does_not_remove_the_object_from_the_cache() -> None:
    """The cache would ignore messages of STATE about it for a while, and its owner would report it as missing."""
    apply = f"apply {RESOURCE.kind} {KEY.name}"
    kube = MemoryKube(drifted(), refusals={apply: Conflict(409, "Conflict", "the object has been modified")})
    there = await kube.get(RESOURCE, KEY)
    writer, cache = applier(kube, there)
    with pytest.raises(Conflict):
        await writer.ensure(CHILD)
    assert cache.get(RESOURCE, KEY) == there
    kube.refusals.clear()
    assert (await writer.ensure(CHILD)).change is ChildChange.UPDATED
    assert cache.get(RESOURCE, KEY) == await kube.get(RESOURCE, KEY) != there


@pytest.mark.parametrize("successor", [None, "another"], ids=["gone", "followed by another"])
async def test_a_missing_object_is_created_again(successor: str | None) -> None:
    there = drifted()
    kube = MemoryKube()
    if successor is not None:
        kube.put({**there, "metadata": {**there["metadata"], "uid": successor}})
    writer, cache = applier(kube, there)
    await writer.ensure(CHILD)
    stored_now = await kube.get(RESOURCE, KEY)
    assert cache.get(RESOURCE, KEY) == stored_now
    assert objects.uid(stored_now) != objects.uid(there)


@pytest.mark.parametrize("now", ["the same", "newer", "gone", "another"])
async def test_the_present_state_of_an_object_is_put_into_the_cache(now: str) -> None:
    there = drifted()
    kube = MemoryKube() if now == "gone" else MemoryKube(there)
    writer, cache = applier(kube, there if now == "gone" else await kube.get(RESOURCE, KEY))
    if now == "newer":
        await kube.merge_patch(RESOURCE, KEY, {"metadata": {"labels": {"new": "x"}}})
    elif now == "another":
        kube.put({**there, "metadata": {**there["metadata"], "uid": "another"}})
    assert await writer.is_outdated(there) is (now != "the same")
    expected = {"the same": {}, "newer": {"new": "x"}}.get(now)
    left = cache.get(RESOURCE, KEY)
    assert (left and objects.labels(left)) == expected


async def test_an_object_held_by_a_finalizer_is_known_to_be_deleted_before_state_reports_it() -> None:
    """Otherwise it would count as serving, and the workload in its place would be deleted."""
    there = stored(stamped(CHILD))
    kube = MemoryKube({**there, "metadata": {**there["metadata"], "finalizers": ["example.com/held"]}})
    writer, cache = applier(kube, await kube.get(RESOURCE, KEY))
    await writer.delete(RESOURCE, cache.get(RESOURCE, KEY) or {})
    ensured = await writer.ensure(CHILD)
    assert objects.is_deleting(ensured.obj)
    assert cache.get(RESOURCE, KEY) == await kube.get(RESOURCE, KEY)
    await writer.delete(RESOURCE, ensured.obj)
    assert kube.writes == [f"delete {RESOURCE.kind} {KEY.name}"]


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_deleted_object_is_read_again_if_the_answer_was_lost(arrives: bool) -> None:
    kube = MemoryKube(stored(stamped(CHILD)))
    there = await kube.get(RESOURCE, KEY)
    writer, _ = applier(kube, there)
    kube.refusals[f"delete {RESOURCE.kind} {KEY.name}"] = Unavailable(0, "", "the answer was lost")
    with pytest.raises(Unavailable):
        await writer.delete(RESOURCE, there)
    if arrives:
        kube.remove(RESOURCE, KEY)
    ensured = await writer.ensure(CHILD)
    assert ensured.change is (ChildChange.CREATED if arrives else ChildChange.UNCHANGED)
    assert ensured.obj == await kube.get(RESOURCE, KEY)


async def test_what_several_owners_may_create_is_created_once() -> None:
    """Neither what the cache knows nor what another owner has created meanwhile is written."""
    kube, cache = MemoryKube(), ObjectCache()
    writer, behind = Applier(cast("Any", kube), cache), Applier(cast("Any", kube), ObjectCache())
    assert [await each.create_once(RESOURCE, CHILD) for each in (writer, writer, behind)] == [True, False, False]
    assert kube.writes == [f"create {RESOURCE.kind} {KEY.name}"]
    assert cache.get(RESOURCE, KEY) == await kube.get(RESOURCE, KEY)


async def test_a_deployment_of_the_reference_operator_is_adopted_once() -> None:
    """Its annotations stay, so its hash does not show that it is as desired."""
    owners = CHILD["metadata"]["ownerReferences"]
    desired = object_of(resources.DEPLOYMENTS, "w", ownerReferences=owners, spec={"replicas": 1})
    of_reference = {"nvidia.com/last-applied-generation": "1", "nvidia.com/last-applied-hash": "theirs"}
    kube, cache = (
        MemoryKube(stored({**desired, "metadata": {**desired["metadata"], "annotations": of_reference}})),
        ObjectCache(),
    )
    kube.publish(cache)
    writer = Applier(cast("Any", kube), cache)
    changes = [(await writer.ensure(desired)).change for _ in range(3)]
    assert changes == [ChildChange.UPDATED, ChildChange.UNCHANGED, ChildChange.UNCHANGED]
    there = await kube.get(resources.DEPLOYMENTS, resources.key_of(desired))
    assert objects.annotations(there) == of_reference


async def test_a_deleted_object_loses_only_the_finalizer_of_the_reference_operator() -> None:
    there = drifted()
    kube = MemoryKube({**there, "metadata": {**there["metadata"], "finalizers": ["nvidia.com/finalizer", "a.b/c"]}})
    there = await kube.get(RESOURCE, KEY)
    writer, _ = applier(kube, there)
    await writer.remove_reference_finalizer(RESOURCE, there)
    left = await kube.get(RESOURCE, KEY)
    assert left["metadata"]["finalizers"] == ["a.b/c"]
    kube.remove(RESOURCE, KEY)
    for each in (left, there):
        await writer.remove_reference_finalizer(RESOURCE, each)


NO_PAGE = NotServed(404, "", "404 page not found")


class Gateway:
    """An API server whose answers do not name the object."""

    async def get(self, *_: object) -> KubeObject:
        raise NO_PAGE

    async def delete(self, *_: object, **__: object) -> None:
        raise NO_PAGE


async def test_a_404_that_names_no_object_removes_nothing_from_the_cache() -> None:
    """A removed object would not be reconciled or deleted again until STATE has another message about it."""
    there = drifted()
    cache = ObjectCache()
    cache.take(RESOURCE, KEY, there, version_of(there))
    kube: Any = Gateway()
    for ask in (Applier(kube, cache).exists(there), Applier(kube, cache).delete(RESOURCE, there)):
        with pytest.raises(NotServed):
            await ask
    assert cache.get(RESOURCE, KEY) == there


async def test_annotations_are_in_the_cache_as_soon_as_they_are_written() -> None:
    kube = MemoryKube(drifted())
    there = await kube.get(RESOURCE, KEY)
    writer, cache = applier(kube, there)
    await writer.annotate(RESOURCE, there, {"a": "1", "nvidia.com/last-applied-hash": None})
    known = await kube.get(RESOURCE, KEY)
    assert cache.get(RESOURCE, KEY) == known
    assert objects.annotations(known) == {"a": "1"}
    with pytest.raises(Conflict):
        await writer.annotate(RESOURCE, there, {"a": "2"})
    kube.remove(RESOURCE, KEY)
    await writer.annotate(RESOURCE, there, {"a": "2"})


@pytest.mark.parametrize(
    ("owners", "left"),
    [
        pytest.param(["first", "second"], ["second"], id="others keep it"),
        pytest.param(["first"], None, id="of its last owner"),
        pytest.param(["first", "foreign"], None, id="of the last one that desires it"),
    ],
)
async def test_a_models_service_is_removed_with_its_last_owner(owners: list[str], left: list[str] | None) -> None:
    of = object_of(
        SERVICES,
        "dynamo-model-abc",
        uid="service",
        ownerReferences=[
            controller_reference(CONFIG_MAPS if each == "foreign" else DYNAMO_COMPONENT_DEPLOYMENTS, each, each)
            for each in owners
        ],
        spec={"selector": {BASE_MODEL_HASH: "abc"}},
    )
    kube = MemoryKube(of)
    there = await kube.get(SERVICES, resources.key_of(of))
    cache, client = ObjectCache(), cast("Any", kube)
    cache.take(SERVICES, resources.key_of(of), there, version_of(there))
    owner = object_of(DYNAMO_COMPONENT_DEPLOYMENTS, "first", uid="first")
    assert await Applier(client, cache).remove(owner, there) is (left is None)
    known = cache.get(SERVICES, resources.key_of(of))
    assert (None if known is None else [each["uid"] for each in known["metadata"]["ownerReferences"]]) == left


async def test_a_models_service_whose_selector_another_client_changed_is_corrected() -> None:
    """It counted as an object of another owner: all its owners failed."""
    owner = object_of(DYNAMO_COMPONENT_DEPLOYMENTS, "first", uid="first")
    desired = model_service("m", "ns", controller_reference(DYNAMO_COMPONENT_DEPLOYMENTS, "first", "first"))
    kube, cache = ForeignWebhook(), ObjectCache()
    kube.changes = False
    writer = Applier(cast("Any", kube), cache)
    created = (await writer.ensure(desired)).obj
    key = resources.key_of(created)
    for selector in ({"x": "y"}, {"x": "y", BASE_MODEL_HASH: None}):
        cache.put(SERVICES, await kube.merge_patch(SERVICES, key, {"spec": {"selector": selector}}))
        ensured = await writer.ensure(desired)
        assert ensured.obj["spec"]["selector"] == created["spec"]["selector"]
        assert owns(owner, ensured.obj)


async def test_an_object_that_cannot_be_taken_over_belongs_to_another_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign webhook may restore the former owner each time."""
    there = drifted()
    there["metadata"]["ownerReferences"] = [{**CHILD["metadata"]["ownerReferences"][0], "uid": "relative"}]
    kube = MemoryKube(there)
    patches = 0

    async def unmoved(*_: object) -> KubeObject:
        nonlocal patches
        patches += 1
        assert patches == 1
        return there

    monkeypatch.setattr(kube, "merge_patch", unmoved)
    writer, _ = applier(kube, there)
    with pytest.raises(NameTaken):
        await writer.ensure(CHILD, family={"relative"})


class ForeignWebhook(MemoryKube):
    """An API server with a webhook that removes labels and binds another Role."""

    changes = True

    async def replace(self, resource: Resource, obj: KubeObject) -> KubeObject:
        self.writes.append(f"replace {resource.kind} {resources.key_of(obj).name}")
        return self._store(resource, resources.key_of(obj), copied(obj))

    def _store(self, resource: Resource, key: ObjectKey, obj: KubeObject) -> KubeObject:
        if self.changes:
            obj["metadata"].pop("labels", None)
            obj |= {"roleRef": {**obj["roleRef"], "name": "other"}} if "roleRef" in obj else {}
        return super()._store(resource, key, obj)


async def test_an_object_that_a_webhook_changes_is_not_written_at_each_reconcile() -> None:
    """Each reconcile applied and replaced it, and reported an update, although nothing changed."""
    kube, clock = ForeignWebhook(drifted()), ManualClock()
    cache, client = ObjectCache(), cast("Any", kube)
    kube.publish(cache)
    writer = Applier(client, cache, clock)

    async def written(desired: KubeObject = CHILD) -> bool:
        kube.writes.clear()
        changed = (await writer.ensure(desired)).change is ChildChange.UPDATED
        assert kube.writes == ([f"apply {RESOURCE.kind} {KEY.name}", f"replace {RESOURCE.kind} {KEY.name}"] * changed)
        return changed

    assert await written()
    assert not await written()
    metadata = {**CHILD["metadata"], "annotations": {"a": "b"}}
    assert await written({**CHILD, "metadata": metadata}), "another one is desired"
    assert not await written({**CHILD, "metadata": metadata})
    cache.put(RESOURCE, await kube.merge_patch(RESOURCE, KEY, {"metadata": {"annotations": {"a": "x"}}}))
    assert await written({**CHILD, "metadata": metadata}), "another client has changed it"
    clock.now += LEFT_ALONE
    assert await written({**CHILD, "metadata": metadata}), "the webhook may be corrected"
    clock.now += LEFT_ALONE
    kube.changes = False
    assert (await writer.ensure(CHILD)).change is ChildChange.UPDATED
    assert objects.labels(await kube.get(RESOURCE, KEY)) == objects.labels(CHILD)


async def test_an_object_whose_immutable_field_a_webhook_changes_is_not_recreated_at_each_reconcile() -> None:
    """The deletion triggered the next reconcile, which deleted it again, without end."""
    kube, cache = ForeignWebhook(), ObjectCache()
    writer = Applier(cast("Any", kube), cache)
    binding = next(each for each in graph_children(stored_graph(component())) if each["kind"] == "RoleBinding")
    changes = [(await writer.ensure(binding)).change for _ in range(3)]
    assert changes == [ChildChange.CREATED, ChildChange.UPDATED, ChildChange.UNCHANGED]
    verbs = [each.split()[0] for each in kube.writes]
    assert verbs == ["create", "delete", "create"]


async def test_an_adapter_that_a_webhook_changes_is_not_written_at_each_reconcile() -> None:
    kube, cache = ForeignWebhook(), ObjectCache()
    writer = Applier(cast("Any", kube), cache)
    resource, owners = resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, CHILD["metadata"]["ownerReferences"]
    adapter = object_of(resource, "a", labels={"a": "b"}, ownerReferences=owners, spec={"replicas": 1})
    changes = [(await writer.ensure(adapter)).change for _ in range(3)]
    assert changes == [ChildChange.CREATED, ChildChange.UPDATED, ChildChange.UNCHANGED]


async def test_a_key_that_another_client_added_to_a_selector_is_removed() -> None:
    """The Service selected no pods, and nothing corrected it."""
    kube, cache = ForeignWebhook(), ObjectCache()
    kube.changes = False
    writer = Applier(cast("Any", kube), cache)
    service = object_of(
        SERVICES, "s", ownerReferences=CHILD["metadata"]["ownerReferences"], spec={"selector": {"a": "b"}}
    )
    await writer.ensure(service)
    key = resources.key_of(service)
    cache.put(SERVICES, await kube.merge_patch(SERVICES, key, {"spec": {"selector": {"x": "y"}}}))
    assert (await writer.ensure(service)).change is ChildChange.UPDATED
    assert (await kube.get(SERVICES, key))["spec"]["selector"] == {"a": "b"}


WORKLOAD = object_of(resources.DEPLOYMENTS, "w", "ns", spec={"replicas": 4})
ANOTHER = {**WORKLOAD["metadata"], "uid": "another"}


@pytest.mark.parametrize(
    ("meanwhile", "changes"),
    [
        pytest.param({"status": {"readyReplicas": 1}}, ["patch Deployment w"], id="another status"),
        pytest.param({"spec": {"replicas": 3}}, [], id="already written"),
        pytest.param({"spec": {"replicas": 2}}, None, id="another number"),
        pytest.param({"spec": {"replicas": 4, "paused": True}}, None, id="another spec"),
        pytest.param({"spec": {"replicas": 3, "paused": True}}, None, id="already written, and another spec"),
        pytest.param({"metadata": ANOTHER}, None, id="another object"),
        pytest.param({"metadata": ANOTHER, "spec": {"replicas": 3}}, None, id="another object with this number"),
    ],
)
async def test_a_number_is_set_only_if_it_was_decided_from_the_present_one(
    meanwhile: KubeObject, changes: list[str] | None
) -> None:
    """A replica that had just taken over a rolling update undid the last step of the former owner."""
    kube, cache = MemoryKube(WORKLOAD), ObjectCache()
    key = resources.key_of(WORKLOAD)
    known = await kube.get(resources.DEPLOYMENTS, key)
    cache.take(resources.DEPLOYMENTS, key, known, version_of(known))
    kube.put({**known, **meanwhile})
    writer = Applier(cast("Any", kube), cache)
    if changes is None:
        with pytest.raises(Conflict):
            await writer.patch_replicas(resources.DEPLOYMENTS, known, 3)
        assert cache.get(resources.DEPLOYMENTS, key) == await kube.get(resources.DEPLOYMENTS, key), (
            "for the next decision"
        )
    else:
        ensured = await writer.patch_replicas(resources.DEPLOYMENTS, known, 3)
        assert objects.replicas(ensured.obj) == 3
    assert kube.writes == (changes or [])
