"""LoRA adapters on workers, with the real API server and its EndpointSlices; a proxy acts as the workers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_model_discovery.app import ModelDiscoveryService
from dynamo_shared.api.resources import DYNAMO_MODELS, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Settings
from dynamo_watcher.app import WatcherService

from .lora_workers import Farm, quick_settings
from .models import URI, condition, event_reasons, model, release, set_ready, until_ready, workers
from .platform import eventually, gone, platform

NAME = "org/support"


@pytest.fixture
def configured(control_plane: ControlPlane, nats_server: NatsServer, lora: Farm, namespace: str) -> Settings:
    probing = {
        "PLATFORM__MODEL_DISCOVERY__PROBE_INTERVAL": "2s",
        # A deletion is reported after it has waited for a second, and until its end: a busy machine must be able to
        # observe it.
        "PLATFORM__MODEL_DISCOVERY__UNLOAD_WITHIN": "10s",
    }
    return quick_settings(control_plane, nats_server, lora, namespace, **probing)


@pytest.fixture
async def running(configured: Settings, kube: KubeClient, namespace: str, lora: Farm) -> AsyncIterator[Any]:
    before = asyncio.all_tasks()
    async with platform(configured, [WatcherService(), ModelDiscoveryService()]) as up:
        yield up
    await release(kube, namespace)
    await eventually(lambda: lora.at_once == 0, "no connection is left open")
    assert not [task for task in asyncio.all_tasks() - before if "dynamo" in repr(task.get_coro())]


@pytest.mark.usefixtures("running")
class TestLoading:
    async def test_every_ready_worker_loads_and_unloads_the_adapter(self, kube: KubeClient, namespace: str, lora: Farm):
        key, hosts = ObjectKey(namespace, "support"), await workers(kube, namespace, 3)
        await kube.create(DYNAMO_MODELS, model(namespace))
        status = await until_ready(kube, key, 3, 3)
        assert [lora[host].loras for host in hosts.values()] == [{NAME: URI}] * 3
        assert condition(status)["reason"] == "AllEndpointsReady"
        assert condition(status, "ServicesFound")["status"] == "True"
        assert status["endpoints"] == [
            {"address": f"http://{hosts[pod]}:9090", "podName": pod, "ready": True} for pod in sorted(hosts)
        ]
        await kube.delete(DYNAMO_MODELS, key)
        await eventually(lambda: gone(kube, DYNAMO_MODELS, key), "it goes")
        assert not lora.loaded()

        async def unloaded() -> dict[str, str] | None:
            reasons = await event_reasons(kube, key)
            return reasons if {"LoRAUnloaded", "EndpointsReady"} <= set(reasons) else None

        reasons = await eventually(unloaded, "the Events of loading and unloading")
        assert reasons["LoRAUnloaded"] == "Unloaded org/support from 3 workers"

    async def test_a_worker_that_is_not_ready_is_removed_from_the_status(
        self, kube: KubeClient, namespace: str, lora: Farm
    ):
        key = ObjectKey(namespace, "support")
        hosts = await workers(kube, namespace, 2)
        await kube.create(DYNAMO_MODELS, model(namespace))
        await until_ready(kube, key, 2, 2)
        await set_ready(kube, ObjectKey(namespace, "worker-0"), False)
        status = await until_ready(kube, key, 1, 1)
        assert [entry["podName"] for entry in status["endpoints"]] == ["worker-1"]
        assert "worker-0 (it is not ready)" in condition(status)["message"]
        # Its adapters may have changed meanwhile: it is queried before it counts again.
        lora[hosts["worker-0"]].loras.clear()
        await set_ready(kube, ObjectKey(namespace, "worker-0"), True)
        await until_ready(kube, key, 2, 2)
        assert lora[hosts["worker-0"]].loras == {NAME: URI}

    async def test_probing_detects_an_adapter_that_a_worker_lost(self, kube: KubeClient, namespace: str, lora: Farm):
        key = ObjectKey(namespace, "support")
        hosts = await workers(kube, namespace, 1)
        await kube.create(DYNAMO_MODELS, model(namespace))
        await until_ready(kube, key, 1, 1)
        lora[hosts["worker-0"]].loras.clear()
        await eventually(lambda: lora[hosts["worker-0"]].loras == {NAME: URI}, "it is loaded again")
