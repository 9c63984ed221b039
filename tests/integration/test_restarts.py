"""A restart in the middle of a roll-out, of any part of the platform or its servers, leads to the same final state.

Pods stay unscheduled while the part restarts, so that the roll-out cannot finish before.
"""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import EtcdServer, NatsServer
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACES, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Service, Settings
from dynamo_watcher.app import WatcherService

from tests.building.control_plane import prepared

from .platform import (
    IMAGE,
    children_of,
    eventually,
    frontend,
    graph,
    hold_pods,
    platform,
    settings,
    until_state,
    worker,
)

pytestmark = [pytest.mark.restart, pytest.mark.long]

_numbers = itertools.count(1)


@dataclass
class World:
    """All parts that can be restarted."""

    plane: ControlPlane
    kube: KubeClient
    nats: NatsServer
    etcd: EtcdServer
    configured: Settings
    stacks: dict[str, AsyncExitStack]

    async def start(self, name: str) -> None:
        """Start a service."""
        service: Service = WatcherService() if name == "watcher" else PodBuilderService()
        self.stacks[name] = AsyncExitStack()
        await self.stacks[name].enter_async_context(platform(self.configured, [service]))

    async def stop(self, name: str) -> None:
        """Stop a service."""
        await self.stacks.pop(name).aclose()

    async def restart(self, name: str) -> None:
        """Stop and start a service."""
        await self.stop(name)
        await self.start(name)


@pytest.fixture(scope="module")
async def own_plane(programs: Programs) -> AsyncIterator[ControlPlane]:
    """A separate control plane for this module, because tests stop it."""
    async with ControlPlane(await prepared(programs, kwok_nodes=1), programs) as plane:
        yield plane


@pytest.fixture
async def world(own_plane, nats_server, etcd_server) -> AsyncIterator[World]:
    async with await KubeClient.open(kubeconfig=own_plane.kubeconfig, field_manager="dynamo-tests") as kube:
        configured = settings(own_plane.kubeconfig, nats_server.url, etcd_server.url)
        up = World(own_plane, kube, nats_server, etcd_server, configured, {})
        await up.start("watcher")
        await up.start("pod-builder")
        try:
            yield up
        finally:
            await hold_pods(kube, False)
            for name in list(up.stacks):
                await up.stop(name)


async def restart_nats_empty(world: World) -> None:
    await world.nats.wipe()
    await world.nats.start()


async def restart_etcd_empty(world: World) -> None:
    await world.etcd.wipe()
    await world.etcd.start()


RESTARTS: dict[str, Callable[[World], Awaitable[Any]]] = {
    "watcher": lambda world: world.restart("watcher"),
    "pod-builder": lambda world: world.restart("pod-builder"),
    "NATS": lambda world: world.nats.restart(),
    "NATS crash": lambda world: _crash(world.nats),
    "NATS without its data": restart_nats_empty,
    "etcd": lambda world: world.etcd.restart(),
    "etcd without its data": restart_etcd_empty,
    "API server": lambda world: world.plane.api_server.restart(),
}


async def _crash(server: NatsServer) -> None:
    await server.kill()
    await server.start()


@pytest.mark.parametrize("part", RESTARTS)
async def test_restart_in_the_middle_of_a_roll_out(world: World, part: str) -> None:
    kube = world.kube
    namespace = f"restart-{next(_numbers)}"
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    key = ObjectKey(namespace, "disagg")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), worker("Worker", replicas=2)]))
    await until_state(kube, key, "successful")
    await hold_pods(kube, True)
    changed = [frontend(), worker("Worker", replicas=2, image=f"{IMAGE}-next")]
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"components": changed}})
    await until_state(kube, key, "pending")

    await RESTARTS[part](world)

    # Changes while the part is down, and after it, must be handled, too.
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, "second", components=[frontend()]))
    await hold_pods(kube, False)
    stored = await until_state(kube, key, "successful")
    await until_state(kube, ObjectKey(namespace, "second"), "successful")

    async def one_generation() -> bool:
        deployments = await kube.list(DEPLOYMENTS, namespace)
        images = {
            item["spec"]["template"]["spec"]["containers"][0]["image"]
            for item in deployments
            if "worker" in item["metadata"]["name"]
        }
        available = all(item["status"].get("availableReplicas") == item["spec"]["replicas"] for item in deployments)
        return len(deployments) == 3 and images == {f"{IMAGE}-next"} and available

    await eventually(one_generation, "the old generation is deleted, all pods are available")
    assert stored["status"]["rollingUpdate"]["phase"] == "Completed"

    for name in ("disagg", "second"):
        await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, name))

    async def nothing() -> bool:
        return not await children_of(kube, namespace)

    await eventually(nothing, "no child is left")
