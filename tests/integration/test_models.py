"""DynamoModels of base models, from a graph's `modelRef` to `kubectl get dm`, with the real API server and services."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_model_discovery.app import ModelDiscoveryService
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api import objects
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_MODELS, SERVICES, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.client import get_if_present
from dynamo_shared.runtime import Settings
from dynamo_watcher.app import WatcherService

from .lora_workers import Farm
from .models import BASE, HASH, condition, model, release, until_ready, until_status
from .platform import eventually, frontend, gone, graph, platform, settings, until_state, worker


@pytest.fixture
def configured(control_plane: ControlPlane, nats_server: NatsServer, lora: Farm, namespace: str) -> Settings:
    return settings(
        control_plane.kubeconfig,
        nats_server.url,
        PLATFORM__KUBERNETES__NAMESPACES=namespace,
        PLATFORM__MODEL_DISCOVERY__PROXY=lora.url,
    )


@pytest.fixture(autouse=True)
async def running(configured: Settings, kube: KubeClient, namespace: str) -> AsyncIterator[Any]:
    async with platform(configured, [WatcherService(), PodBuilderService(), ModelDiscoveryService()]) as up:
        yield up
    await release(kube, namespace)


async def table(kube: KubeClient, key: ObjectKey) -> dict[str, Any]:
    """The row in the output of `kubectl get`."""
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    answer = json.loads(await kube.raw_get(DYNAMO_MODELS.path(key.namespace, key.name), accept=accept))
    names = [column["name"] for column in answer["columnDefinitions"]]
    return dict(zip(names, answer["rows"][0]["cells"], strict=True))


async def test_a_graphs_workers_serve_its_models(kube: KubeClient, namespace: str, lora: Farm):
    decode = {**worker("Decode", replicas=2), "modelRef": {"name": BASE}}
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), decode]))
    base, adapter = ObjectKey(namespace, "qwen"), ObjectKey(namespace, "support")
    await kube.create(DYNAMO_MODELS, model(namespace, "qwen", "base", modelName=BASE))
    await kube.create(DYNAMO_MODELS, model(namespace))
    status = await until_ready(kube, base, 2, 2)
    assert condition(status)["reason"] == "EndpointsDiscovered"
    # The slices of the component's Service also have the workers, and may come first.
    service = f"dynamo-model-{HASH}"
    await until_status(
        kube, base, lambda now: service in condition(now, "ServicesFound")["message"], f"names {service}"
    )
    await until_ready(kube, adapter, 2, 2)
    row = await table(kube, base)
    assert (row["BaseModel"], row["Type"], row["Ready"], row["Total"]) == (BASE, "base", 2, 2)
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    patch = {"spec": {"components": [frontend(), {**decode, "replicas": 3}]}}
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "disagg"), patch)
    await until_ready(kube, base, 3, 3)
    await until_ready(kube, adapter, 3, 3)
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "disagg"))
    status = await until_ready(kube, adapter, 0, 0, within=60)
    assert condition(status)["reason"] == "NoEndpoints"
    await kube.delete(DYNAMO_MODELS, adapter)
    await eventually(lambda: gone(kube, DYNAMO_MODELS, adapter), "it goes")


async def test_the_service_of_a_model_outlives_each_of_its_owners(kube: KubeClient, namespace: str):
    """A rolling update deletes the component deployment that created it, and another graph has workers of the model."""
    decode = {**worker("Decode", replicas=1), "modelRef": {"name": BASE}}
    of = [graph(namespace, each, components=[frontend(), decode]) for each in ("one", "two")]
    service = ObjectKey(namespace, f"dynamo-model-{HASH}")

    async def owners() -> list[str]:
        stored = await get_if_present(kube, SERVICES, service)
        return sorted(each["name"] for each in stored["metadata"]["ownerReferences"]) if stored is not None else []

    async def has_owners(*prefixes: str) -> bool:
        present = await owners()
        return len(present) == len(prefixes) and all(map(str.startswith, present, prefixes))

    for new in of:
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, new)
    await eventually(lambda: has_owners("one-decode-", "two-decode-"), "both own it")
    first, uid = await owners(), objects.uid(await kube.get(SERVICES, service))
    for each in ("one", "two"):
        await until_state(kube, ObjectKey(namespace, each), "successful")
        changed = {**worker("Decode", image="registry.example/other:2"), "modelRef": {"name": BASE}}
        patch = {"spec": {"components": [frontend(), changed]}}
        await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, each), patch)

    async def moved() -> bool:
        return await has_owners("one-decode-", "two-decode-") and not set(await owners()) & set(first)

    await eventually(moved, "only the new workers own it", within=60)
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "one"))
    await eventually(lambda: has_owners("two-decode-"), "the other graph keeps it")
    assert objects.uid(await kube.get(SERVICES, service)) == uid
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "two"))
    await eventually(lambda: gone(kube, SERVICES, service), "it goes with its last owner")
