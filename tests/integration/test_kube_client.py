"""The client against a real API server: each verb, each error that callers catch, Events as kubectl shows them."""

import asyncio
import copy
import ssl
from collections import Counter
from typing import Any

import msgspec
import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    KubeClient,
    NotFound,
    NotServed,
    Unauthorized,
    config,
    coverage,
    discovery,
)
from dynamo_shared.kube.credentials import Credentials
from dynamo_shared.kube.events import EventRecorder
from dynamo_shared.kube.transport import Outgoing, Transport

from tests.building.definitions import definition_of
from tests.building.objects import object_of

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
# The uid of no object.
UNKNOWN_USER = "00000000-0000-0000-0000-000000000000"
CORE_EVENTS = Resource("", "v1", "events", "Event")


def config_map(namespace: str, name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def deployment(namespace: str, name: str = "web") -> dict[str, Any]:
    env = [{"name": "A", "value": "1"}]
    resources = {"limits": {"cpu": "1000m", "memory": "1024Mi"}}
    ports = [{"containerPort": 8000}]
    container = {"name": "main", "image": "image", "env": env, "resources": resources, "ports": ports}
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8192Mi"}}]
    pod = {"containers": [container], "volumes": volumes, "hostNetwork": False, "tolerations": []}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return object_of(DEPLOYMENTS, name, namespace, labels={"a": "b"}, spec=spec)


async def test_an_object_is_created_read_changed_and_deleted(kube: KubeClient, namespace: str) -> None:
    key = ObjectKey(namespace, "a")
    created = await kube.create(CONFIG_MAPS, config_map(namespace, x="1"))
    assert (await kube.get(CONFIG_MAPS, key))["data"] == {"x": "1"}
    with pytest.raises(AlreadyExists):
        await kube.create(CONFIG_MAPS, config_map(namespace))
    patched = await kube.merge_patch(CONFIG_MAPS, key, {"data": {"x": None, "y": "2"}})
    assert patched["data"] == {"y": "2"}
    with pytest.raises(Conflict):
        await kube.replace(CONFIG_MAPS, {**created, "data": {}})
    assert (await kube.replace(CONFIG_MAPS, {**patched, "data": {"z": "3"}}))["data"] == {"z": "3"}
    await kube.delete(CONFIG_MAPS, key)
    for call in (kube.get(CONFIG_MAPS, key), kube.delete(CONFIG_MAPS, key), kube.merge_patch(CONFIG_MAPS, key, {})):
        with pytest.raises(NotFound):
            await call


async def test_names_may_be_generated(kube: KubeClient, namespace: str) -> None:
    obj = {**config_map(namespace), "metadata": {"generateName": "made-", "namespace": namespace}}
    assert (await kube.create(CONFIG_MAPS, obj))["metadata"]["name"].startswith("made-")


async def test_apply_owns_what_it_applied_and_nothing_else(kube: KubeClient, namespace: str) -> None:
    builder, person = kube.acting_as("dynamo-pod-builder"), kube.acting_as("person")
    await builder.apply(CONFIG_MAPS, config_map(namespace, own="1", own_too="2"))
    await person.apply(CONFIG_MAPS, config_map(namespace, theirs="3"))
    again = await builder.apply(CONFIG_MAPS, config_map(namespace, own="1"))
    assert again["data"] == {"own": "1", "theirs": "3"}
    managers = {(entry["manager"], entry["operation"]) for entry in again["metadata"]["managedFields"]}
    assert managers == {("dynamo-pod-builder", "Apply"), ("person", "Apply")}
    with pytest.raises(Conflict) as caught:
        await person.apply(CONFIG_MAPS, config_map(namespace, own="9"), force=False)
    assert [cause.field for cause in caught.value.causes] == [".data.own"]
    assert "dynamo-pod-builder" in caught.value.message
    same = await builder.apply(CONFIG_MAPS, config_map(namespace, own="1"))
    assert same["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]


async def test_status_is_applied_and_creates_nothing(kube: KubeClient, namespace: str) -> None:
    condition = {"type": "Progressing", "status": "True", "reason": "r", "message": "m"}
    status: dict[str, Any] = object_of(
        DEPLOYMENTS, "web", namespace, status={"observedGeneration": 1, "conditions": [condition]}
    )
    with pytest.raises(NotFound):
        await kube.apply_status(DEPLOYMENTS, status)
    # The Deployment has no replicas during the test, so that only this test writes its status.
    created = await kube.create(DEPLOYMENTS, deployment(namespace))
    stale = {**status, "metadata": {**status["metadata"], "uid": UNKNOWN_USER}}
    with pytest.raises(Conflict):
        await kube.apply_status(DEPLOYMENTS, stale)
    applied = await kube.apply_status(
        DEPLOYMENTS, {**status, "metadata": {**status["metadata"], "uid": created["metadata"]["uid"]}}
    )
    assert "Progressing" in {entry["type"] for entry in applied["status"]["conditions"]}


async def test_dry_run_changes_nothing_and_checks_everything(kube: KubeClient, namespace: str) -> None:
    await kube.create(CONFIG_MAPS, config_map(namespace), dry_run=True)
    await kube.apply(CONFIG_MAPS, config_map(namespace), dry_run=True)
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAPS, ObjectKey(namespace, "a"))
    bad = deployment(namespace)
    bad["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    with pytest.raises(Invalid) as caught:
        await kube.apply(DEPLOYMENTS, bad, dry_run=True)
    assert caught.value.causes[0].field == "spec.template.spec.restartPolicy"


@pytest.mark.parametrize(
    ("container", "said"),
    [
        ({"name": "c", "image": "i", "bogus": 1}, "bogus"),
        ({"name": 7, "image": "i"}, "string"),
        ({"name": "c", "image": "i", "resources": {"limits": {"cpu": "much"}}}, "quantities must match"),
        ({"name": "c", "image": "i", "ports": [{"containerPort": 70000}]}, "must be between 1 and 65535"),
        ("text", "containers"),
    ],
)
async def test_a_rejected_object_is_invalid_for_every_way_to_write_it(
    kube: KubeClient, namespace: str, container: Any, said: str
) -> None:
    bad = deployment(namespace)
    bad["spec"]["template"]["spec"]["containers"] = [container]
    for call in (kube.create(DEPLOYMENTS, bad), kube.apply(DEPLOYMENTS, bad)):
        with pytest.raises(Invalid) as caught:
            await call
        assert said in caught.value.message
        assert not caught.value.retriable


async def test_delete_preconditions(kube: KubeClient, namespace: str) -> None:
    key = ObjectKey(namespace, "a")
    first = await kube.create(CONFIG_MAPS, config_map(namespace))
    await kube.delete(CONFIG_MAPS, key, uid=first["metadata"]["uid"])
    second = await kube.create(CONFIG_MAPS, config_map(namespace))
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAPS, key, uid=first["metadata"]["uid"])
    await kube.merge_patch(CONFIG_MAPS, key, {"data": {"x": "1"}})
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAPS, key, resource_version=second["metadata"]["resourceVersion"])
    await kube.delete(CONFIG_MAPS, key, uid=second["metadata"]["uid"], dry_run=True)
    await kube.delete(CONFIG_MAPS, key, uid=second["metadata"]["uid"])


async def test_lists_in_pages_by_label_and_field(
    kube: KubeClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo_shared.kube.client.PAGE_SIZE", 3)
    for number in range(7):
        obj = config_map(namespace, f"c{number}")
        obj["metadata"]["labels"] = {"half": "first" if number < 3 else "second"}
        await kube.create(CONFIG_MAPS, obj)
    config_maps = await kube.list(CONFIG_MAPS, namespace, label_selector="half")
    assert [item["metadata"]["name"] for item in config_maps] == [f"c{number}" for number in range(7)]
    assert {(item["apiVersion"], item["kind"]) for item in config_maps} == {("v1", "ConfigMap")}
    assert len(await kube.list(CONFIG_MAPS, namespace, label_selector="half in (first)")) == 3
    assert len(await kube.list(CONFIG_MAPS, namespace, field_selector="metadata.name=c5")) == 1
    everywhere = await kube.list(CONFIG_MAPS, label_selector="half=second")
    assert {item["metadata"]["namespace"] for item in everywhere} >= {namespace}


async def test_names_are_listed_without_their_objects(kube: KubeClient, namespace: str) -> None:
    names, are_more = await kube.list_names(NAMESPACES, limit=1000)
    assert namespace in names
    assert not are_more
    first, are_more = await kube.list_names(NAMESPACES, limit=1)
    assert (first, are_more) == (names[:1], True)


async def test_a_user_without_rights_gets_forbidden(control_plane: ControlPlane, namespace: str) -> None:
    async with await KubeClient.open(kubeconfig=control_plane.user_kubeconfig("no one-special")) as stranger:
        with pytest.raises(Forbidden, match="no one-special"):
            await stranger.list(CONFIG_MAPS, namespace)
        with pytest.raises(Forbidden):
            await stranger.create(CONFIG_MAPS, config_map(namespace))


async def test_an_unknown_user_gets_unauthorized(control_plane: ControlPlane) -> None:
    known = await config.load(control_plane.kubeconfig)
    assert known.tls is not None
    tls = ssl.create_default_context(cafile=str(control_plane.certificates.certificate))
    unknown = config.Connection(known.server, tls, None, None, Credentials("Bearer wrong"), "default")
    async with KubeClient(Transport(unknown, timeout=5), field_manager="x") as client:
        with pytest.raises(Unauthorized):
            await client.raw_get("/api/v1/namespaces")


async def test_a_missing_namespace_and_a_type_that_is_not_served(kube: KubeClient) -> None:
    with pytest.raises(NotFound):
        await kube.create(CONFIG_MAPS, config_map("no-such-namespace"))
    with pytest.raises(NotServed):
        await kube.get(Resource("example.com", "v1", "foos", "Foo"), ObjectKey("default", "a"))


async def test_a_service_account_token_works(kube: KubeClient, control_plane: ControlPlane, namespace: str) -> None:
    """Log in as a pod does, except for the mount."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": namespace}}
    await kube.create(SERVICE_ACCOUNTS, account)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/sa/token"
    answer = await kube._transport.request(Outgoing(method="POST", path=path, body=msgspec.json.encode(request)))
    known = await config.load(control_plane.kubeconfig)
    tls = ssl.create_default_context(cafile=str(control_plane.certificates.certificate))
    token = msgspec.json.decode(answer)["status"]["token"]
    connection = config.Connection(known.server, tls, None, None, Credentials(f"Bearer {token}"), namespace)
    async with KubeClient(Transport(connection, timeout=5), field_manager="x") as client:
        with pytest.raises(Forbidden, match=f"system:serviceaccount:{namespace}:sa"):
            await client.list(CONFIG_MAPS, namespace)


async def test_one_client_serves_many_at_once(kube: KubeClient, namespace: str) -> None:
    names = [f"many-{number}" for number in range(200)]
    await asyncio.gather(*(kube.apply(CONFIG_MAPS, config_map(namespace, name)) for name in names))
    config_maps = await kube.list(CONFIG_MAPS, namespace)
    assert {item["metadata"]["name"] for item in config_maps} >= set(names)


async def test_the_answer_to_an_apply_covers_the_desired_object(kube: KubeClient, namespace: str) -> None:
    desired = deployment(namespace)
    observed = await kube.apply(DEPLOYMENTS, desired)
    assert coverage.missing(desired, observed) == ""
    drifted = copy.deepcopy(observed)
    drifted["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert coverage.missing(desired, drifted) == "spec.template.spec.containers[name=main].image"


async def test_list_items_of_another_manager_are_removed(kube: KubeClient, namespace: str) -> None:
    desired = deployment(namespace)
    builder, person = kube.acting_as("dynamo-pod-builder"), kube.acting_as("person")
    observed = await builder.apply(DEPLOYMENTS, desired)
    spec = copy.deepcopy(observed["spec"]["template"]["spec"])
    spec["containers"][0]["env"].append({"name": "THEIRS", "value": "x"})
    spec["containers"].append({"name": "sidecar", "image": "x"})
    await person.merge_patch(DEPLOYMENTS, ObjectKey(namespace, "web"), {"spec": {"template": {"spec": spec}}})
    cleaned = await _apply_and_clean(builder, desired)
    assert coverage.missing(desired, cleaned) == ""
    [container] = cleaned["spec"]["template"]["spec"]["containers"]
    assert [entry["name"] for entry in container["env"]] == ["A"]


async def _apply_and_clean(client: KubeClient, desired: dict[str, Any]) -> dict[str, Any]:
    """Retry until the deployment controller did not write the status in between."""
    for _ in range(20):
        observed = await client.apply(DEPLOYMENTS, desired)
        assert coverage.missing(desired, observed)
        try:
            return await client.replace(DEPLOYMENTS, coverage.drop_foreign(desired, observed))
        except Conflict:
            continue
    raise AssertionError("another user writes all the time")


async def test_types_can_be_used_once_they_are_installed(kube: KubeClient, namespace: str) -> None:
    plural = f"things{namespace.replace('-', '')}"
    things = Resource("example.com", "v1", plural, "Thing")
    assert not await discovery.served(kube, things)
    definition = definition_of(things)
    await discovery.install_crds(kube, [definition])
    await discovery.install_crds(kube, [definition])
    assert await discovery.served(kube, things)
    assert "v1" in (await discovery.groups(kube))["example.com"]
    metadata = {"name": "a", "namespace": namespace}
    thing: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata}
    made = await kube.create(things, thing)
    status: dict[str, Any] = {**thing, "status": {"ready": True}}
    with pytest.raises(Conflict):
        await kube.apply_status(things, {**status, "metadata": {**thing["metadata"], "resourceVersion": "1"}})
    with pytest.raises(Conflict):
        await kube.apply(things, {**thing, "metadata": {**thing["metadata"], "uid": UNKNOWN_USER}})
    known = {name: made["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}
    assert (await kube.apply_status(things, {**status, "metadata": known}))["status"] == {"ready": True}
    await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", f"{plural}.example.com"))


async def test_kubectl_describe_lists_events_of_the_object(kube: KubeClient, namespace: str) -> None:
    obj = await kube.create(CONFIG_MAPS, config_map(namespace))
    now = 1_800_000_000.0
    outcomes: Counter[str] = Counter()
    recorder = EventRecorder(
        kube, "dynamo-pod-builder", lambda: now, instance="test-1", count=lambda each: outcomes.update((each,))
    )
    async with recorder:
        for _ in range(3):
            recorder.record(obj, type_="Normal", reason="Created", message="Created web", action="Create")
        recorder.record(obj, type_="Warning", reason="Failed", message="x" * 5000, action="Reconcile")
        await recorder._queue.join()
        now += 61
        recorder.record(obj, type_="Normal", reason="Created", message="Created web", action="Create")
    assert outcomes == {"written": 3, "counted": 2}
    # The query of kubectl describe.
    uid = obj["metadata"]["uid"]
    items = await kube.list(CORE_EVENTS, namespace, field_selector=f"involvedObject.uid={uid}")
    shown = {event["reason"]: event for event in items}
    assert set(shown) == {"Created", "Failed"}
    created = shown["Created"]
    assert (created["message"], created["type"]) == ("Created web", "Normal")
    assert created["series"]["count"] == 4
    assert created["reportingComponent"] == "dynamo-pod-builder"
    assert len(shown["Failed"]["message"].encode()) == 1024


# Sizes that etcd rejects, that the API server cannot send to it, and that the API server does not accept.
@pytest.mark.parametrize("size", [1_700_000, 2_500_000, 3_500_000])
async def test_an_object_that_is_too_large_is_invalid(kube: KubeClient, namespace: str, size: int) -> None:
    large = deployment(namespace)
    large["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "a" * size}]
    with pytest.raises(Invalid):
        await kube.apply(DEPLOYMENTS, large)
