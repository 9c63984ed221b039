"""Two replicas of the pod-builder share the graphs, and one takes over when the other stops."""

import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack

import pytest
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACES, ObjectKey, Resource
from dynamo_shared.leases.channel import EtcdOptions
from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.rendezvous import best_member, partition_of
from dynamo_shared.runtime import Running
from dynamo_watcher.app import WatcherService

from .namespaces import empty
from .platform import eventually, frontend, graph, platform, settings, until_state


def measured(up: Running, name: str, **labels: str) -> float:
    """Sum of a replica's samples of a metric with these labels."""
    return sum(
        sample.value
        for family in up.context.metrics.registry.collect()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def cached(up: Running, resource: Resource) -> float:
    """The number of objects of a resource in the cache of a replica's pod-builder."""
    return measured(up, "dynamo_platform_cached_objects", service="pod-builder", resource=resource.id)


async def deployments(kube) -> int:
    """The number of Deployments that the platform created."""
    return len(await kube.list(DEPLOYMENTS, label_selector=labels.GRAPH_DEPLOYMENT_NAME))


async def create_all(kube, keys: Iterable[ObjectKey], *, wait: bool = True) -> None:
    for key in keys:
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(key.namespace, key.name, components=[frontend()]))
    for key in keys if wait else ():
        await until_state(kube, key, "successful")


REPLICAS = ("one", "two")


@pytest.fixture
async def namespaces(control_plane, kube, namespace) -> AsyncIterator[list[str]]:
    """Four namespaces for either replica, chosen by name: arbitrary names might all belong to one replica."""
    of: dict[str | None, list[str]] = {each: [] for each in REPLICAS}
    for number in itertools.count():
        name = f"{namespace}-{number}"
        of[best_member(partition_of(ObjectKey(name, "")), REPLICAS)].append(name)
        if all(len(each) >= 4 for each in of.values()):
            break
    names = [name for each in of.values() for name in each[:4]]
    for name in names:
        await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield names
    for name in names:
        await empty(control_plane, kube, name)


async def test_replicas_share_the_work_and_take_over(control_plane, nats_server, etcd_server, kube, namespaces):
    def configured(replica: str):
        # No lease expires while the machine pauses; otherwise the other replica would read and reconcile everything.
        extra = {"PLATFORM__REPLICA_ID": replica, "PLATFORM__REPLICAS": "2", "PLATFORM__ETCD__LEASE_TTL": "60s"}
        return settings(control_plane.kubeconfig, nats_server.url, etcd_server.url, **extra)

    async with EtcdClient(EtcdOptions(endpoints=(etcd_server.url,))) as client:
        etcd = configured("one").platform
        # After its first start, which waits for leases of a previous instance.
        await client.put(f"{etcd.etcd.prefix.rstrip('/')}/{etcd.cluster_name}/epoch", b"")
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        one = await first.enter_async_context(platform(configured("one"), [WatcherService(), PodBuilderService()]))
        two = await second.enter_async_context(platform(configured("two"), [WatcherService(), PodBuilderService()]))
        await eventually(
            lambda: all(measured(up, "dynamo_platform_partitions", service="pod-builder") >= 4 for up in (one, two)),
            "both replicas hold partitions",
        )
        await create_all(kube, [ObjectKey(each, "shared") for each in namespaces])
        about = {"resource_type": "dynamographdeployments"}
        worked = [measured(up, "dynamo_operator_reconcile_total", **about) for up in (one, two)]
        assert all(worked), f"reconciles of graphs by replica: {worked}"
        # The first replica had everything for a moment, and drops released objects after a minute.
        assert 0 < cached(two, DEPLOYMENTS) < await deployments(kube), "it keeps those of its own namespaces alone"

        def graphs() -> list[float]:
            return [cached(up, DYNAMO_GRAPH_DEPLOYMENTS) for up in (one, two)]

        # Each replica learns of graphs at its own pace, including graphs of earlier tests that are being deleted.
        await eventually(graphs, "both know all graphs", where=lambda known: known[0] == known[1])
        # One replica stops in the middle of its work.
        await create_all(kube, [ObjectKey(each, "handed-over") for each in namespaces], wait=False)
        await first.aclose()
        await create_all(kube, [ObjectKey(each, "taken-over") for each in namespaces])
        for each in namespaces:
            await until_state(kube, ObjectKey(each, "handed-over"), "successful")

        async def lacking() -> float:
            return await deployments(kube) - cached(two, DEPLOYMENTS)

        await eventually(lacking, "it keeps all Deployments", where=lambda number: number == 0)
