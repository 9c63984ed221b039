"""Adapters on a worker of the real Dynamo runtime: its routes, escaping and statuses."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from dynamo_devcluster import free_port
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.probe import PROBE_WITHIN, LocalHttp
from dynamo_devcluster.process import ManagedProcess
from dynamo_model_discovery.lora.adapter import Adapter
from dynamo_model_discovery.lora.adapter_state import AdapterState
from dynamo_model_discovery.lora.api import WorkerApi
from dynamo_model_discovery.lora.responses import LoraError
from dynamo_model_discovery.lora.settle import settle
from dynamo_model_discovery.models.workers import Worker
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.kube import KubeClient

from tests.dynamo_runtime.environment import RuntimeEnvironment
from tests.dynamo_runtime.models import tiny_model
from tests.dynamo_runtime.processes import as_pod

SCRIPT = Path(__file__).parents[1] / "dynamo_runtime" / "lora_worker.py"
NAMES = ("support", "org/support", "a b%2Fc", "100%", "ünï", "a?b#c", "..a", "a/../b")


@pytest.fixture
async def api() -> AsyncIterator[WorkerApi]:
    async with WorkerApi(timeout=15, concurrency=4) as client:
        yield client


async def start(
    dynamo_runtime: RuntimeEnvironment, logs: Path, *, enabled: bool, **more: str
) -> tuple[ManagedProcess, str]:
    port = free_port()
    http = LocalHttp(port)
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(logs),
        "DYN_SYSTEM_HOST": "127.0.0.1",
        "DYN_SYSTEM_PORT": str(port),
        "DYN_TCP_RPC_HOST": "127.0.0.1",
        **({"DYN_LORA_ENABLED": "true"} if enabled else {}),
        **more,
    }

    async def ready() -> bool:
        status, _ = await http.request("GET", "/v1/loras", within=PROBE_WITHIN)
        return status == (200 if enabled else 404)

    command = [str(dynamo_runtime.python), str(SCRIPT)]
    process = ManagedProcess("lora", command, logs / "lora.log", ready, ready_within=60.0, environ=environ)
    await process.start()
    return process, f"http://127.0.0.1:{port}"


async def test_adapters_are_loaded_listed_and_unloaded(
    dynamo_runtime: RuntimeEnvironment, api: WorkerApi, tmp_path: Path
):
    process, url = await start(dynamo_runtime, tmp_path, enabled=True)
    try:
        standings = [
            AdapterState(ObjectKey("prod", "m"), Worker("pod", "uid", url), Adapter(name, "s3://bucket/a"))
            for name in NAMES
        ]
        for state in standings:
            await settle(api, state, lambda: 0.0)
            assert state.loaded
        listing = await api.listing(url)
        assert (listing.names, listing.path) == (frozenset(NAMES), "/v1/loras")
        for state in standings:
            state.set_desired(state.worker, None, ())
            await settle(api, state, lambda: 0.0)
            assert state.settled
        assert (await api.listing(url)).names == frozenset()
        assert not await api.unload(url, "/v1/loras", "support")
        with pytest.raises(LoraError, match="HTTP 500: LoRA not found at s3://missing/a"):
            await api.load(url, "/v1/loras", Adapter("a", "s3://missing/a"))
    finally:
        await process.stop()


async def test_a_worker_without_lora_gives_a_clear_error(
    dynamo_runtime: RuntimeEnvironment, api: WorkerApi, tmp_path: Path
):
    process, url = await start(dynamo_runtime, tmp_path, enabled=False)
    try:
        with pytest.raises(LoraError, match="is DYN_LORA_ENABLED=true set on it"):
            await api.listing(url)
    finally:
        await process.stop()


@pytest.fixture
async def registered(control_plane: ControlPlane, kube: KubeClient, namespace: str) -> dict[str, str]:
    """Variables of a process that registers in Kubernetes as an existing pod."""
    spec = {"containers": [{"name": "main", "image": "worker"}]}
    pod = {**PODS.type_meta, "metadata": {"name": "worker", "namespace": namespace}, "spec": spec}
    kubeconfig = str(control_plane.kubeconfig)
    return {"DISCOVERY": "kubernetes", "KUBECONFIG": kubeconfig, **as_pod(await kube.create(PODS, pod))}


async def test_adapters_count_once_their_cards_are_published(
    dynamo_runtime: RuntimeEnvironment, api: WorkerApi, tmp_path: Path, registered: dict[str, str]
):
    model = await tiny_model(dynamo_runtime, tmp_path / "model")
    process, url = await start(dynamo_runtime, tmp_path, enabled=True, MODEL=str(model), **registered)
    try:
        states = [
            AdapterState(ObjectKey("prod", uri), Worker("pod", "uid", url), Adapter(name, f"s3://bucket/{uri}"))
            for name, uri in (("org/support v1", "a"), ("lost", "unpublished"))
        ]
        await settle(api, states[0], lambda: 0.0)
        assert states[0].loaded
        assert states[0].published
        with pytest.raises(LoraError, match="published no model card"):
            await settle(api, states[1], lambda: 0.0)
        assert (await api.listing(url)).names == {"org/support v1", "lost"}
    finally:
        await process.stop()
