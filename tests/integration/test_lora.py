"""LoRA adapters on workers, with the real API server and its EndpointSlices; the workers are behind a proxy that plays them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_model_discovery.app import ModelDiscoveryService
from dynamo_shared.api.resources import DYNAMO_MODELS, PODS, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Settings
from dynamo_watcher.app import WatcherService

from .lora_workers import Farm, quick_settings
from .models import (
    URI,
    condition,
    event_reasons,
    model,
    release,
    set_ready,
    until_ready,
    until_status,
    worker_pod,
    workers,
)
from .platform import eventually, gone, platform

NAME = "org/support"


@pytest.fixture
def unload_within() -> str:
    """How long a deletion waits for workers; a test may set it."""
    return "3s"


@pytest.fixture
def configured(
    control_plane: ControlPlane, nats_server: NatsServer, lora: Farm, namespace: str, unload_within: str
) -> Settings:
    return quick_settings(
        control_plane,
        nats_server,
        lora,
        namespace,
        PLATFORM__MODEL_DISCOVERY__PROBE_INTERVAL="2s",
        PLATFORM__MODEL_DISCOVERY__UNLOAD_WITHIN=unload_within,
    )


@pytest.fixture
async def running(configured: Settings, kube: KubeClient, namespace: str, lora: Farm) -> AsyncIterator[Any]:
    before = asyncio.all_tasks()
    async with platform(configured, [WatcherService(), ModelDiscoveryService()]) as up:
        yield up
    await release(kube, namespace)
    await eventually(lambda: lora.at_once == 0, "no connection is left open", 30)
    assert not [task for task in asyncio.all_tasks() - before if "dynamo" in repr(task.get_coro())]


@pytest.mark.usefixtures("running")
class TestLoading:
    async def test_every_ready_worker_loads_it_and_lets_it_go(self, kube: KubeClient, namespace: str, lora: Farm):
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

    async def test_a_new_worker_counts_when_it_has_the_adapter(self, kube: KubeClient, namespace: str, lora: Farm):
        key = ObjectKey(namespace, "support")
        await workers(kube, namespace, 1)
        await kube.create(DYNAMO_MODELS, model(namespace))
        await until_ready(kube, key, 1, 1)
        lora.delay = 3600.0  # Until the status was read: a busy machine may miss what lasts a moment.
        await kube.create(PODS, worker_pod(namespace, "late"))
        status = await until_ready(kube, key, 1, 2)
        assert condition(status)["reason"] == "NotReady"
        assert "1 of 2 workers have the adapter loaded" in condition(status)["message"]
        lora.delay = 0.0  # The late worker may not have been asked yet.
        for each in lora.workers.values():
            each.delay = 0.0
        await until_ready(kube, key, 2, 2)

    async def test_a_worker_that_is_not_ready_leaves(self, kube: KubeClient, namespace: str, lora: Farm):
        key = ObjectKey(namespace, "support")
        hosts = await workers(kube, namespace, 2)
        await kube.create(DYNAMO_MODELS, model(namespace))
        await until_ready(kube, key, 2, 2)
        await set_ready(kube, ObjectKey(namespace, "worker-0"), False)
        status = await until_ready(kube, key, 1, 1)
        assert [entry["podName"] for entry in status["endpoints"]] == ["worker-1"]
        assert "worker-0 (it is not ready)" in condition(status)["message"]
        # What it had meanwhile no one knows: it is asked before it counts again.
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
        await eventually(lambda: lora[hosts["worker-0"]].loras == {NAME: URI}, "it is loaded again", 30)

    async def test_another_source_and_another_name_replace_what_was_loaded(
        self, kube: KubeClient, namespace: str, lora: Farm
    ):
        key = ObjectKey(namespace, "support")
        await workers(kube, namespace, 2)
        await kube.create(DYNAMO_MODELS, model(namespace))
        await until_ready(kube, key, 2, 2)
        other = "file:///adapters/support-v2"
        await kube.merge_patch(DYNAMO_MODELS, key, {"spec": {"source": {"uri": other}}})
        await eventually(
            lambda: [w.loras for w in lora.workers.values()] == [{NAME: other}] * 2, "all have the new source", 30
        )
        await kube.merge_patch(DYNAMO_MODELS, key, {"spec": {"modelName": "renamed"}})
        await eventually(
            lambda: [w.loras for w in lora.workers.values()] == [{"renamed": other}] * 2, "all have the new name", 30
        )
        await until_ready(kube, key, 2, 2)
        await eventually(
            lambda: kube.get(DYNAMO_MODELS, key),
            "earlier names are forgotten",
            where=lambda answer: "previous" not in answer["metadata"]["annotations"]["nvidia.com/loaded-adapter"],
        )

    async def test_a_name_is_one_models_until_that_is_gone(self, kube: KubeClient, namespace: str, lora: Farm):
        first, second = ObjectKey(namespace, "first"), ObjectKey(namespace, "second")
        await workers(kube, namespace, 1)
        await kube.create(DYNAMO_MODELS, model(namespace, "first", modelName=NAME))
        await until_ready(kube, first, 1, 1)
        later = {"uri": "hf://org/support"}
        await kube.create(DYNAMO_MODELS, model(namespace, "second", modelName=NAME, source=later))
        status = await until_status(kube, second, lambda now: condition(now)["reason"] == "NameTaken", "is refused")
        assert "DynamoModel 'first'" in condition(status)["message"]
        await kube.delete(DYNAMO_MODELS, first)
        await until_ready(kube, second, 1, 1)
        assert [worker.loras for worker in lora.workers.values()] == [{NAME: later["uri"]}]

    async def test_two_models_may_swap_their_names(self, kube: KubeClient, namespace: str, lora: Farm):
        one, two = ObjectKey(namespace, "one"), ObjectKey(namespace, "two")
        await workers(kube, namespace, 1)
        for key, uri in ((one, "s3://b/1"), (two, "s3://b/2")):
            await kube.create(DYNAMO_MODELS, model(namespace, key.name, modelName=key.name, source={"uri": uri}))
            await until_ready(kube, key, 1, 1)
        await kube.merge_patch(DYNAMO_MODELS, one, {"spec": {"modelName": "two"}})
        await until_status(kube, one, lambda now: condition(now)["reason"] == "NameTaken", "the name is taken")
        await kube.merge_patch(DYNAMO_MODELS, two, {"spec": {"modelName": "one"}})
        await eventually(
            lambda: next(iter(lora.workers.values())).loras == {"one": "s3://b/2", "two": "s3://b/1"},
            "they are swapped",
            30,
        )
        await until_ready(kube, one, 1, 1)
        await until_ready(kube, two, 1, 1)


@pytest.mark.usefixtures("running")
class TestTrouble:
    async def test_one_bad_worker_holds_no_one_up_and_is_named(self, kube: KubeClient, namespace: str, lora: Farm):
        said = "no answer within 1 s"
        key = ObjectKey(namespace, "support")
        hosts = await workers(kube, namespace, 3)
        bad = lora[hosts["worker-1"]]
        bad.mode = "hang"
        await kube.create(DYNAMO_MODELS, model(namespace))
        await until_ready(kube, key, 2, 3)
        status = await until_status(kube, key, lambda now: said in condition(now)["message"], "the failure is said")
        assert condition(status)["status"] == "False"
        assert "1 failing: worker-1: " in condition(status)["message"]
        await eventually(
            lambda: event_reasons(kube, key),
            "an Event reports it",
            where=lambda answer: "PartialEndpointFailure" in answer,
        )
        bad.mode = "ok"
        status = await until_ready(kube, key, 3, 3)
        assert condition(status)["reason"] == "AllEndpointsReady"
        assert "failing" not in condition(status)["message"]

    async def test_deletion_waits_for_a_bad_worker_so_long_and_no_longer(
        self, kube: KubeClient, namespace: str, lora: Farm
    ):
        key = ObjectKey(namespace, "support")
        hosts = await workers(kube, namespace, 2)
        await kube.create(DYNAMO_MODELS, model(namespace))
        await until_ready(kube, key, 2, 2)
        bad = lora[hosts["worker-1"]]
        bad.mode = "hang"
        await kube.delete(DYNAMO_MODELS, key)
        await until_status(kube, key, lambda now: condition(now)["reason"] == "Unloading", "the status reports it")
        await eventually(lambda: gone(kube, DYNAMO_MODELS, key), "it goes")
        assert lora.loaded() == {NAME: 1}

        async def reported() -> str:
            return (await event_reasons(kube, key)).get("LoRAUnloadFailed", "")

        assert "org/support is still loaded, or may be, at worker-1: " in await eventually(
            reported, "an Event reports it"
        )
        # It is owed, and done as soon as the worker can.
        bad.mode = "ok"
        await eventually(lambda: not lora.loaded(), "nothing is left", 30)

    @pytest.mark.parametrize("unload_within", ["10m"])
    async def test_deletion_does_not_wait_for_workers_that_are_gone(self, kube: KubeClient, namespace: str, lora: Farm):
        key = ObjectKey(namespace, "support")
        hosts = await workers(kube, namespace, 1)
        await kube.create(DYNAMO_MODELS, model(namespace))
        await until_ready(kube, key, 1, 1)
        lora[hosts["worker-0"]].mode = "hang"
        await kube.delete(PODS, ObjectKey(namespace, "worker-0"), grace=0)
        await kube.delete(DYNAMO_MODELS, key)
        await eventually(lambda: gone(kube, DYNAMO_MODELS, key), "it goes")

    @pytest.mark.parametrize("unload_within", ["10m"])
    async def test_deletion_does_not_wait_for_workers_without_lora(self, kube: KubeClient, namespace: str, lora: Farm):
        key = ObjectKey(namespace, "support")
        hosts = await workers(kube, namespace, 1)
        lora[hosts["worker-0"]].mode = "absent"
        await kube.create(DYNAMO_MODELS, model(namespace))
        await until_status(
            kube, key, lambda now: "DYN_LORA_ENABLED" in condition(now)["message"], "the failure is said"
        )
        await kube.delete(DYNAMO_MODELS, key)
        await eventually(lambda: gone(kube, DYNAMO_MODELS, key), "it goes")

    async def test_no_one_serves_the_base_model(self, kube: KubeClient, namespace: str):
        key = ObjectKey(namespace, "support")
        await kube.create(DYNAMO_MODELS, model(namespace))
        status = await until_ready(kube, key, 0, 0)
        assert condition(status)["reason"] == "NoEndpoints"
        assert "modelRef.name 'Qwen/Qwen3-0.6B'" in condition(status)["message"]
        assert condition(status, "ServicesFound")["reason"] == "NoServicesFound"
        await kube.delete(DYNAMO_MODELS, key)
        await eventually(lambda: gone(kube, DYNAMO_MODELS, key), "it goes", 5)
