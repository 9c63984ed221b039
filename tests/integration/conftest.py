"""Real servers for integration tests: started once a session, a namespace of its own for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from dynamo_ctl.localcluster.controlplane import ControlPlane
from dynamo_ctl.localcluster.options import ControlPlaneOptions
from dynamo_ctl.localcluster.programs import Programs
from dynamo_ctl.localcluster.servers import EtcdServer, NatsServer
from dynamo_ctl.platform import install_definitions
from dynamo_shared.api.resources import NAMESPACES, ObjectKey
from dynamo_shared.kube import KubeClient

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def programs() -> Programs:
    """Where server programs come from; obtaining them the first time takes minutes."""
    return Programs()


@pytest.fixture(scope="session")
async def control_plane(programs: Programs) -> AsyncIterator[ControlPlane]:
    """etcd, kube-apiserver, controllers, scheduler and two KWOK nodes with eight GPUs each, our CRDs installed."""
    async with ControlPlane(ControlPlaneOptions(kwok_nodes=2, prepare=install_definitions), programs) as plane:
        yield plane


@pytest.fixture(scope="session")
async def kube(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client with all rights."""
    async with await KubeClient.open(kubeconfig=control_plane.kubeconfig, field_manager="dynamo-tests") as client:
        yield client


@pytest.fixture
async def namespace(kube: KubeClient) -> AsyncIterator[str]:
    """A fresh namespace, which goes with all that is in it: the next tests need the nodes."""
    name = f"test-{os.getpid()}-{next(_numbers)}"
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await kube.delete(NAMESPACES, ObjectKey("", name))


@pytest.fixture
async def nats_server(programs: Programs, tmp_path: Path) -> AsyncIterator[NatsServer]:
    """A nats-server with JetStream, of this test alone."""
    async with NatsServer(await programs.obtain("nats-server"), tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def etcd_server(programs: Programs, tmp_path: Path) -> AsyncIterator[EtcdServer]:
    """An etcd, of this test alone."""
    async with EtcdServer(await programs.obtain("etcd"), tmp_path / "etcd") as server:
        yield server
