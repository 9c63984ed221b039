"""The watcher between a real API server and a real nats-server, each of which may be unavailable."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from dynamo_devcluster import Programs
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer, NatsServerOptions
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, SERVICE_ACCOUNTS, SERVICES, ObjectKey, Resource
from dynamo_shared.bus import NatsBus
from dynamo_shared.kube import KubeClient
from dynamo_shared.state import ObjectCache, StateReader
from dynamo_watcher.app import WatcherService
from dynamo_watcher.feed import Feed
from dynamo_watcher.follower import lookup, reflecting
from dynamo_watcher.metrics import WatcherMetrics
from dynamo_watcher.resources import WATCHED
from prometheus_client import CollectorRegistry

from tests.building import waiting
from tests.building.tasks import in_background

from .platform import platform, settings, until_event

READS = tuple(entry.resource for entry in WATCHED)


def graph(namespace: str, name: str) -> dict[str, Any]:
    spec = {"backendFramework": "vllm", "components": [{"name": "Frontend", "type": "frontend", "replicas": 1}]}
    return {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def service(namespace: str, name: str, labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {**SERVICES.type_meta, "metadata": metadata, "spec": {"ports": [{"port": 80}]}}


class Bench:
    """A watcher and a reader, each with its own connection."""

    def __init__(self, kube: KubeClient, namespace: str, cache: ObjectCache, reader: StateReader) -> None:
        self.kube = kube
        self.namespace = namespace
        self.cache = cache
        self.reader = reader

    def names(self, resource: Resource = DYNAMO_GRAPH_DEPLOYMENTS) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in self.cache.list(resource, self.namespace))

    async def create(self, *names: str) -> None:
        for name in names:
            await self.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(self.namespace, name))

    async def delete(self, name: str) -> None:
        await self.kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(self.namespace, name))


#: The documents promise a minute until STATE is complete after NATS lost its data; a busy machine adds some. Seconds.
CAUGHT_UP_WITHIN = 80.0


until = partial(waiting.until, within=CAUGHT_UP_WITHIN)


@asynccontextmanager
async def watching(kube: KubeClient, url: str, cluster: str, **login: Any) -> AsyncIterator[None]:
    bus = await NatsBus.connect(servers=(url,), name="watcher", **login)
    feed = Feed(reflecting(kube), bus, cluster, WATCHED, WatcherMetrics(CollectorRegistry()), lookup=lookup(kube))
    try:
        async with in_background(feed.run()):
            yield
    finally:
        await bus.close()


@asynccontextmanager
async def reading(
    kube: KubeClient, namespace: str, url: str, *, cluster: str = "", **login: Any
) -> AsyncIterator[Bench]:
    bus = await NatsBus.connect(servers=(url,), name="reader", **login)
    cache = ObjectCache()
    reader = StateReader(bus, cluster or namespace, READS, cache)
    try:
        async with in_background(reader.run()):
            yield Bench(kube, namespace, cache, reader)
    finally:
        await bus.close()


async def test_only_objects_of_the_platform_are_watched(
    kube: KubeClient, namespace: str, nats_server: NatsServer
) -> None:
    await kube.create(SERVICES, service(namespace, "foreign", {"app": "other"}))
    await kube.create(SERVICES, service(namespace, "labelled", {"nvidia.com/dynamo-component": "g"}))
    async with watching(kube, nats_server.url, namespace), reading(kube, namespace, nats_server.url) as bench:
        await asyncio.wait_for(bench.reader.synced(), 60)
        assert bench.names(SERVICES) == ["labelled"]
        # The namespace's default account belongs to Kubernetes.
        assert bench.names(SERVICE_ACCOUNTS) == []
        # An object that loses its label is removed as if it were deleted.
        labels = {"metadata": {"labels": {"nvidia.com/dynamo-component": None}}}
        await kube.merge_patch(SERVICES, ObjectKey(namespace, "labelled"), labels)
        await until(lambda: bench.names(SERVICES) == [])


@pytest.mark.restart
async def test_nats_restarts_without_its_data(kube: KubeClient, namespace: str, nats_server: NatsServer) -> None:
    async with watching(kube, nats_server.url, namespace), reading(kube, namespace, nats_server.url) as bench:
        await bench.create("a", "b")
        await until(lambda: bench.names() == ["a", "b"])
        await nats_server.wipe()
        await bench.create("c")
        await bench.delete("a")
        await nats_server.start()
        await until(lambda: bench.names() == ["b", "c"])
        # A new reader gets everything, too.
        async with reading(kube, namespace, nats_server.url) as late:
            await asyncio.wait_for(late.reader.synced(), CAUGHT_UP_WITHIN)
            assert late.names() == ["b", "c"]


async def test_an_event_says_that_an_object_is_too_large_for_a_message(
    control_plane: ControlPlane, kube: KubeClient, namespace: str, programs: Programs, tmp_path: Path
) -> None:
    options = NatsServerOptions(max_payload=64 << 10)
    async with (
        NatsServer(await programs.obtain("nats-server"), tmp_path / "small", options) as nats,
        platform(settings(control_plane.kubeconfig, nats.url), [WatcherService()]),
    ):
        # Random text, so that compression does not reduce it.
        large = {"metadata": {**graph(namespace, "large")["metadata"], "annotations": {"noise": token_hex(100_000)}}}
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, "large") | large)
        event = await until_event(kube, namespace, "ObjectTooLarge", "large")
    assert event["type"] == "Warning"
    assert "make it smaller" in event["note"]
