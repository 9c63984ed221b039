"""Containers share GPUs that a real scheduler allocates; failover engines are replaced together with their pods."""

from collections.abc import AsyncIterator

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import KUBE_DISCOVERY_MODE
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient

from .devices import devices_of
from .platform import eventually, frontend, gone, graph, platform, settings, until_state, worker


@pytest.fixture
async def devices(kube: KubeClient) -> AsyncIterator[None]:
    """Devices that exist from the start."""
    async with devices_of(kube):
        yield


def sharing(*, gpus: int) -> KubeObject:
    component = {**worker("Worker"), "experimental": {"gpuMemoryService": {}, "failover": {}}}
    component["podTemplate"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return component


@pytest.mark.usefixtures("devices")
async def test_engines_of_a_pod_share_the_gpus_that_it_claims(
    kube: KubeClient, control_plane: ControlPlane, nats_server: NatsServer, namespace: str
) -> None:
    key = ObjectKey(namespace, "shared")
    template = ObjectKey(namespace, "shared-worker-gpu")

    async def allocated() -> list[int]:
        # Claims that are not yet or no longer allocated do not count: a claim loses its devices before it is deleted.
        statuses = [each.get("status", {}) for each in await kube.list(RESOURCE_CLAIMS, namespace)]
        return sorted(len(each["allocation"]["devices"]["results"]) if "allocation" in each else 0 for each in statuses)

    async with platform(settings(control_plane.kubeconfig, nats_server.url)):
        desired = graph(namespace, "shared", components=[frontend(), sharing(gpus=2)])
        desired["metadata"]["annotations"] = {KUBE_DISCOVERY_MODE: "container"}
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, desired)
        await until_state(kube, key, "successful")
        assert await allocated() == [2]
        (pod,) = [each for each in await kube.list(PODS, namespace) if "resourceClaims" in each["spec"]]
        assert [each["name"] for each in pod["spec"]["containers"]] == ["engine-0", "engine-1"]
        before = await kube.get(RESOURCE_CLAIM_TEMPLATES, template)

        # Another number of GPUs: the claim template is immutable, and the new generation must not get the old one's
        # claim.
        change = {"spec": {"components": [frontend(), sharing(gpus=3)]}}
        await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, change)
        await until_state(kube, key, "successful")
        after = await kube.get(RESOURCE_CLAIM_TEMPLATES, template)
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        await eventually(allocated, "the claim of the old generation is gone", where=lambda answer: answer == [3])

        await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"components": [frontend(), worker("Worker")]}})
        await until_state(kube, key, "successful")
        assert await gone(kube, RESOURCE_CLAIM_TEMPLATES, template)

        async def none_shares() -> bool:
            workloads = await kube.list(DEPLOYMENTS, namespace)
            return all("resourceClaims" not in each["spec"]["template"]["spec"] for each in workloads)

        await eventually(none_shares, "the Deployment of the old generation is gone")
