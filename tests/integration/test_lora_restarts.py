"""Adapters survive restarts of the service and of NATS: final state right, nothing loaded twice, nothing left."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import EtcdServer, NatsServer
from dynamo_model_discovery.app import ModelDiscoveryService
from dynamo_shared.api.resources import DYNAMO_MODELS, PODS, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Settings
from dynamo_watcher.app import WatcherService

from .lora_workers import Farm, quick_settings
from .models import model, release, until_ready, worker_pod, workers
from .platform import eventually, gone, platform, settings

pytestmark = pytest.mark.restart

NAME = "org/support"


@pytest.fixture
async def configured(
    control_plane: ControlPlane, nats_server: NatsServer, lora: Farm, namespace: str, kube: KubeClient
) -> AsyncIterator[Settings]:
    # No worker hangs here, and one that is slow because the machine is busy must not be asked twice: requests are counted.
    patient = {"PLATFORM__MODEL_DISCOVERY__REQUEST_TIMEOUT": "60s"}
    yield quick_settings(control_plane, nats_server, lora, namespace, **patient)
    await release(kube, namespace)


def posts(lora: Farm) -> int:
    return sum(len(worker.methods("POST")) for worker in lora.workers.values())


async def test_loaded_adapters_are_recognized_and_not_loaded_twice(configured, kube, namespace, lora):
    key = ObjectKey(namespace, "support")
    hosts = await workers(kube, namespace, 3)
    async with platform(configured, [WatcherService()]):
        async with platform(configured, [ModelDiscoveryService()]):
            await kube.create(DYNAMO_MODELS, model(namespace))
            await until_ready(kube, key, 3, 3)
        lora[hosts["worker-0"]].loras.clear()
        async with platform(configured, [ModelDiscoveryService()]):
            await eventually(lambda: _loaded(lora, 3), "the one that lost it has it again")
            await until_ready(kube, key, 3, 3)
        assert posts(lora) == 4


async def _loaded(lora: Farm, count: int) -> bool:
    return lora.loaded() == {NAME: count}


@pytest.fixture
def shared(
    control_plane: ControlPlane, nats_server: NatsServer, etcd_server: EtcdServer, lora: Farm, namespace: str
) -> Settings:
    return settings(
        control_plane.kubeconfig,
        nats_server.url,
        etcd_server.url,
        PLATFORM__KUBERNETES__NAMESPACES=namespace,
        PLATFORM__MODEL_DISCOVERY__PROXY=lora.url,
        PLATFORM__REPLICAS="2",
    )


async def test_two_replicas_share_models_and_none_is_lost_with_one(shared, kube, namespace, lora):
    names = [f"adapter-{number}" for number in range(6)]
    await workers(kube, namespace, 2)
    async with platform(shared, [WatcherService()]), platform(shared, [ModelDiscoveryService()]):
        async with platform(shared, [ModelDiscoveryService()]):
            for name in names:
                await kube.create(DYNAMO_MODELS, model(namespace, name))
            for name in names:
                await until_ready(kube, ObjectKey(namespace, name), 2, 2)
        await kube.create(PODS, worker_pod(namespace, "late"))
        for name in names:
            await until_ready(kube, ObjectKey(namespace, name), 3, 3)
        assert posts(lora) == 18, "no adapter was loaded by both"
        for name in names:
            await kube.delete(DYNAMO_MODELS, ObjectKey(namespace, name))
        for name in names:
            await eventually(partial(gone, kube, DYNAMO_MODELS, ObjectKey(namespace, name)), "it goes")
    assert not lora.loaded()
