"""A separate control plane for admission: webhooks that fail closed must not affect other tests."""

from collections.abc import AsyncIterator

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api.resources import NAMESPACES, Resource
from dynamo_shared.kube import KubeClient

from tests.integration.admission import bare_control_plane

from .cluster import ApiServer, api_server

NAMESPACE = "cases"
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)


@pytest.fixture(scope="package")
async def control_plane() -> AsyncIterator[ControlPlane]:
    """etcd and kube-apiserver with this platform's CRDs; every known user may do everything."""
    async with bare_control_plane() as plane:
        async with await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as client:
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            await client.create(CLUSTER_ROLE_BINDINGS, _everybody())
        yield plane


@pytest.fixture(scope="package")
async def kube(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client with all rights."""
    async with await KubeClient.open(kubeconfig=control_plane.kubeconfig, field_manager="dynamo-tests") as client:
        yield client


@pytest.fixture(scope="package")
async def server(control_plane: ControlPlane) -> AsyncIterator[ApiServer]:
    """The API server, for any user."""
    async with api_server(control_plane.kubeconfig) as result:
        yield result


def _everybody() -> dict[str, object]:
    group = {"apiGroup": CLUSTER_ROLE_BINDINGS.group, "kind": "Group", "name": "system:authenticated"}
    metadata = {"name": "everybody"}
    role_ref = {"apiGroup": CLUSTER_ROLE_BINDINGS.group, "kind": "ClusterRole", "name": "cluster-admin"}
    return {**CLUSTER_ROLE_BINDINGS.type_meta, "metadata": metadata, "roleRef": role_ref, "subjects": [group]}
