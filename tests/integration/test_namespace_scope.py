"""A platform for one namespace next to one for all namespaces: each graph is managed by one of them."""

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api import namespace_scope
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, LEASES, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Settings

from .platform import eventually, frontend, gone, graph, platform, settings, until_state


@pytest.fixture
def everywhere(control_plane: ControlPlane, nats_server: NatsServer) -> Settings:
    return settings(control_plane.kubeconfig, nats_server.url)


@pytest.fixture
def lease(namespace: str) -> ObjectKey:
    return ObjectKey(namespace, namespace_scope.NAME)


@pytest.mark.parametrize("how", ["NAMESPACE__RESTRICTED", "PLATFORM__KUBERNETES__NAMESPACES"])
async def test_a_platform_of_one_namespace_claims_it_by_a_lease_and_releases_it(  # noqa: PLR0917 - fixtures
    kube: KubeClient, control_plane: ControlPlane, nats_server: NatsServer, namespace: str, lease: ObjectKey, how: str
) -> None:
    restricted = settings(control_plane.kubeconfig, nats_server.url, **{how: namespace})
    async with platform(restricted):
        observed = await eventually(lambda: _observed(kube, lease), "the lease")
        assert observed["spec"]["leaseDurationSeconds"] == 30
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend()]))
        await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    assert await gone(kube, LEASES, lease)


async def test_a_platform_of_all_namespaces_ignores_one_that_another_platform_holds(
    kube: KubeClient, everywhere: Settings, namespace: str, lease: ObjectKey
) -> None:
    held = {
        **LEASES.type_meta,
        "metadata": {"name": lease.name, "namespace": namespace},
        # As the reference creates it: not renewed yet.
        "spec": {"holderIdentity": "namespace-restricted-operator-1.2.0", "leaseDurationSeconds": 3600},
    }
    await kube.create(LEASES, held)
    async with platform(everywhere):
        key = ObjectKey(namespace, "disagg")
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend()]))
        # The whole life of another graph: this one had as much time.
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("default", "witness", components=[frontend()]))
        try:
            await until_state(kube, ObjectKey("default", "witness"), "successful")
            assert (await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)).get("status") is None
            await kube.delete(LEASES, lease)
            await until_state(kube, key, "successful")
        finally:
            await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("default", "witness"))


async def _observed(kube: KubeClient, key: ObjectKey):
    held_leases = [each for each in await kube.list(LEASES, key.namespace) if each["metadata"]["name"] == key.name]
    return held_leases[0] if held_leases else None
