"""Two replicas of the pod-builder share the graphs, and one takes over what the other leaves."""

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
    """Sum of a replica's samples of that name that carry these labels."""
    return sum(
        sample.value
        for family in up.context.metrics.registry.collect()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def cached(up: Running, resource: Resource) -> float:
    """How many objects of a resource the pod-builder of a replica keeps."""
    return measured(up, "dynamo_platform_cached_objects", service="pod-builder", resource=resource.id)


async def deployments(kube) -> int:
    """How many there are that the platform created."""
    return len(await kube.list(DEPLOYMENTS, label_selector=labels.GRAPH_DEPLOYMENT_NAME))


async def create_all(kube, keys: Iterable[ObjectKey], *, wait: bool = True) -> None:
    for key in keys:
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(key.namespace, key.name, components=[frontend()]))
    for key in keys if wait else ():
        await until_state(kube, key, "successful")


REPLICAS = ("one", "two")


@pytest.fixture
async def namespaces(kube, namespace) -> AsyncIterator[list[str]]:
    """Four for either replica, whatever they are called: names that are made as they come may all be one's."""
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
        await empty(kube, name)


async def test_replicas_share_the_work_and_take_over(control_plane, nats_server, etcd_server, kube, namespaces):
    def configured(replica: str):
        # None is lost while the machine stands still: all would be read, and worked on, by the other one.
        extra = {"PLATFORM__REPLICA_ID": replica, "PLATFORM__REPLICAS": "2", "PLATFORM__ETCD__LEASE_TTL": "60s"}
        return settings(control_plane.kubeconfig, nats_server.url, etcd_server.url, **extra)

    async with EtcdClient(EtcdOptions(endpoints=(etcd_server.url,))) as client:
        etcd = configured("one").platform
        # It has had its first start, which waits for leases of an earlier life.
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
        # The first one had everything for a moment, and forgets what it gave away after a minute.
        assert 0 < cached(two, DEPLOYMENTS) < await deployments(kube), "it keeps those of its own namespaces alone"

        def graphs() -> list[float]:
            return [cached(up, DYNAMO_GRAPH_DEPLOYMENTS) for up in (one, two)]

        # Each hears of them in its own time, also of those of the tests before, which go.
        await eventually(graphs, "both know all graphs", where=lambda known: known[0] == known[1])
        # One goes in the middle of work that it has begun.
        await create_all(kube, [ObjectKey(each, "handed-over") for each in namespaces], wait=False)
        await first.aclose()
        await create_all(kube, [ObjectKey(each, "taken-over") for each in namespaces])
        for each in namespaces:
            await until_state(kube, ObjectKey(each, "handed-over"), "successful")

        async def lacking() -> float:
            return await deployments(kube) - cached(two, DEPLOYMENTS)

        await eventually(lacking, "it keeps all Deployments", where=lambda number: number == 0)
