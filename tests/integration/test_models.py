"""DynamoModels of base models, from a graph's `modelRef` to `kubectl get dm`, with the real API server and services."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_model_discovery.app import ModelDiscoveryService
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_MODELS, ObjectKey
from dynamo_shared.kube import KubeClient
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
