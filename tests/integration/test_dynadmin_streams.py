"""Streams of the REST API other than collections: Kubernetes Events, and decisions about replicas."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_dynadmin.api import events as events_of_objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    PODS,
    ROLE_BINDINGS,
    ObjectKey,
    key_of,
)
from dynamo_shared.bus import EventPublisher
from dynamo_shared.bus.nats import NatsBus, NatsOptions
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Settings
from dynamo_shared.wire.specifications.deployment import GRAPH_DEPLOYMENT
from dynamo_shared.wire.specifications.planning import PlanData

from tests.building.objects import controlled_by, object_of

from .dynadmin import EVERYTHING, WATCHING, Api, account, happens
from .etcd import compact

LOGS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}


@pytest.fixture
async def api(rest_api: Api, kube: KubeClient, namespace: str) -> Api:
    return replace(rest_api, token=await account(kube, namespace, "owner", EVERYTHING, WATCHING, LOGS))


async def graph(kube: KubeClient, namespace: str, name: str = "shop") -> KubeObject:
    spec = {"components": [{"name": "Frontend", "type": "frontend", "replicas": 1}]}
    obj = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, obj)


async def component(kube: KubeClient, owner: KubeObject) -> KubeObject:
    key = key_of(owner)
    spec = {"name": "Frontend", "type": "frontend", "replicas": 1}
    resource = DYNAMO_COMPONENT_DEPLOYMENTS
    made = object_of(resource, f"{key.name}-frontend", key.namespace, ownerReferences=[controlled_by(owner)], spec=spec)
    return await kube.create(resource, made)


async def test_events_are_streamed_and_resumed(
    api: Api, kube: KubeClient, namespace: str, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, STATE may have an object seconds after the Event about it.
    monkeypatch.setattr(events_of_objects, "_HELD_FOR", 60.0)
    path = f"/api/v1/namespaces/{namespace}/deployments/shop/events"
    mine, other = await graph(kube, namespace), await graph(kube, namespace, "other")
    await happens(kube, mine, "First")
    assert [each["reason"] for each in (await api("GET", path)).json["items"]] == ["First"]
    async with asyncio.timeout(60), api.stream(f"{path}?watch=true") as events:
        first = await events.until("synced")
        assert [(event, data.get("reason")) for event, data, _ in first[:-1]] == [("event", "First")]
        await happens(kube, other, "Elsewhere")
        # The component is created after the stream started: its Events belong to the graph, too.
        await happens(kube, await component(kube, mine), "OfItsComponent")
        event, data, position = await events.next()
        assert (event, data["reason"], data["object"]["kind"]) == (
            "event",
            "OfItsComponent",
            "DynamoComponentDeployment",
        )
    await happens(kube, mine, "Meanwhile")
    async with asyncio.timeout(60), api.stream(f"{path}?watch=true", Last_Event_ID=position) as events:
        assert (await events.next())[0] == "synced"
        # The component's Event is repeated if the other graph's Event still waited for its object.
        while (reason := (await events.next())[1]["reason"]) != "Meanwhile":
            assert reason == "OfItsComponent"
    await compact(control_plane, int(mine["metadata"]["resourceVersion"]))
    async with asyncio.timeout(60), api.stream(f"{path}?watch=true", Last_Event_ID="1") as events:
        result = await events.until("resync")
        assert result[-1][0] == "resync"
    assert (await api("GET", f"{path}?watch=true", Last_Event_ID="x")).status == 400


async def test_a_stream_of_events_ends_when_its_caller_loses_the_right_to_watch_them(
    api: Api, kube: KubeClient, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/deployments/shop/events?watch=true"
    await graph(kube, namespace)
    await account(kube, namespace, "reader", WATCHING)
    token = await account(kube, namespace, "guest", EVERYTHING)
    assert (await api("GET", path, token=token)).status == 403
    subject = {"kind": "ServiceAccount", "name": "guest", "namespace": namespace}
    reader = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    binding = {**ROLE_BINDINGS.type_meta, "metadata": {"name": "guest-reads", "namespace": namespace}}
    await kube.create(ROLE_BINDINGS, {**binding, "roleRef": reader, "subjects": [subject]})
    async with asyncio.timeout(60):
        while (await api("GET", path.partition("?")[0], token=token)).status != 200:
            await asyncio.sleep(0.05)
        async with api.stream(path, token=token) as events:
            await events.until("synced")
            await kube.delete(ROLE_BINDINGS, ObjectKey(namespace, "guest-reads"))
            event, data, _ = await events.next()
            assert event == "unauthorized", data
            assert (await events.next())[0] == "closed"


async def test_followed_logs_say_why_a_pod_has_none_and_end_with_the_graph(
    api: Api, kube: KubeClient, namespace: str
) -> None:
    await graph(kube, namespace)
    path = f"/api/v1/namespaces/{namespace}/deployments/shop/logs?follow=true"
    async with asyncio.timeout(60), api.stream(path) as events:
        labels = {"nvidia.com/dynamo-graph-deployment-name": "shop", "nvidia.com/dynamo-component": "Frontend"}
        spec = {"schedulerName": "none", "containers": [{"name": "main", "image": "registry.test/frontend:1"}]}
        pod = {**PODS.type_meta, "metadata": {"name": "shop-0", "namespace": namespace, "labels": labels}, "spec": spec}
        await kube.create(PODS, pod)
        event, row, _ = await events.next()
        assert (event, row["pod"], row["component"], row["text"]) == ("notice", "shop-0", "Frontend", "Pending")
        ended = {"state": {"terminated": {"exitCode": 0}}, "ready": False, "restartCount": 0}
        status = {"containerStatuses": [{"name": "main", "image": "i", "imageID": "", **ended}]}
        await kube.merge_patch(PODS, ObjectKey(namespace, "shop-0"), {"status": status}, subresource="status")
        # The API server answers with an empty log for a pod without a node.
        assert (await events.next())[1]["text"] == "the container has ended"
        await kube.delete(PODS, ObjectKey(namespace, "shop-0"), grace=0)
        await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "shop"))
        assert (await events.until("end"))[-1][0] == "end"


@pytest.fixture
async def publisher(shared_nats_server: NatsServer) -> AsyncIterator[EventPublisher]:
    bus = await NatsBus.connect(NatsOptions(servers=(shared_nats_server.url,), name="test"))
    result = EventPublisher(bus, Settings().platform.cluster_name)
    try:
        yield result
    finally:
        await bus.close()


async def plan(publisher: EventPublisher, obj: KubeObject, message: str, **fields: Any) -> None:
    data = PlanData(
        graph_deployment=obj["metadata"]["name"],
        namespace=obj["metadata"]["namespace"],
        policy="adaptive",
        reason="scale_up",
        message=message,
        replicas={"decode": 3},
        current={"decode": 2},
        inputs={"requestsPerSecond": 4.0},
        predictions={"attainment_aim": 0.96},
        **fields,
    )
    publisher.publish(kind=GRAPH_DEPLOYMENT, obj=obj, event="planned", data=data, causation_id=message)
    assert await publisher.flush(10)


async def test_decisions_are_listed_streamed_and_resumed(
    api: Api, kube: KubeClient, namespace: str, publisher: EventPublisher
) -> None:
    path = f"/api/v1/namespaces/{namespace}/deployments/shop/decisions"
    mine, other = await graph(kube, namespace), await graph(kube, namespace, "other")
    assert (await api("GET", path)).json == {"items": [], "truncated": False}
    earlier = {**mine, "metadata": {**mine["metadata"], "uid": "of-an-earlier-graph"}}
    for obj, message in ((earlier, "zero"), (mine, "one"), (other, "other"), (mine, "two")):
        await plan(publisher, obj, message)
    listed = (await api("GET", path)).json
    assert [each["message"] for each in listed["items"]] == ["one", "two"]
    assert listed["items"][0]["predictions"] == {"attainment_aim": 0.96}
    last = (await api("GET", f"{path}?limit=1")).json
    assert ([each["message"] for each in last["items"]], last["truncated"]) == (["two"], True)
    async with asyncio.timeout(60), api.stream(f"{path}?watch=true&limit=1") as events:
        first = await events.until("synced")
        assert [data["message"] for _, data, _ in first[:-1]] == ["two"]
        await plan(publisher, mine, "three")
        event, data, position = await events.next()
        assert (event, data["message"]) == ("decision", "three")
    await plan(publisher, mine, "four")
    async with asyncio.timeout(60), api.stream(f"{path}?watch=true", Last_Event_ID=position) as events:
        missed = await events.until("synced")
        assert [data["message"] for _, data, _ in missed[:-1]] == ["four"]
    async with asyncio.timeout(60), api.stream(f"{path}?watch=true", Last_Event_ID="3-elsewhere") as events:
        assert (await events.next())[0] == "resync"
    stranger = await account(kube, namespace, "stranger")
    assert (await api("GET", path, token=stranger)).status == 403
