"""Two replicas of the pod-builder share the graphs, and one takes over what the other leaves."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack

from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.runtime import Running
from dynamo_watcher.app import WatcherService

from .platform import eventually, frontend, graph, platform, settings, until_state


def measured(up: Running, name: str, **labels: str) -> float:
    """Sum of a replica's samples of that name that carry these labels."""
    return sum(
        sample.value
        for family in up.context.metrics.registry.collect()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def create_all(kube, namespace: str, names: Iterable[str]) -> None:
    for name in names:
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, name, components=[frontend()]))
    for name in names:
        await until_state(kube, ObjectKey(namespace, name), "successful")


async def test_replicas_share_the_work_and_take_over(control_plane, nats_server, etcd_server, kube, namespace):
    def configured(replica: str):
        extra = {"PLATFORM__REPLICA_ID": replica, "PLATFORM__REPLICAS": "2"}
        return settings(control_plane.kubeconfig, nats_server.url, etcd_server.url, **extra)

    async with AsyncExitStack() as first, AsyncExitStack() as second:
        one = await first.enter_async_context(platform(configured("one"), [WatcherService(), PodBuilderService()]))
        two = await second.enter_async_context(platform(configured("two"), [WatcherService(), PodBuilderService()]))

        async def shared() -> bool:
            return all(measured(up, "dynamo_platform_partitions", service="pod-builder") >= 4 for up in (one, two))

        await eventually(shared, "both replicas hold partitions")
        await create_all(kube, namespace, [f"shared-{number}" for number in range(12)])
        about = {"resource_type": "dynamographdeployments", "namespace": namespace}
        worked = [measured(up, "dynamo_operator_reconcile_total", **about) for up in (one, two)]
        assert all(worked), f"reconciles of graphs by replica: {worked}"
        # One goes in the middle of work that it has begun.
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, "handed-over"))
        await first.aclose()
        await create_all(kube, namespace, [f"taken-over-{number}" for number in range(6)])
        await until_state(kube, ObjectKey(namespace, "handed-over"), "successful")
