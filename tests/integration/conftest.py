"""Real servers for integration tests: started once a session; each test gets its own namespace."""

import itertools
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dynamo_devcluster import ProgramUnavailableError
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import EtcdServer, NatsServer
from dynamo_shared.api.resources import NAMESPACES
from dynamo_shared.kube import KubeClient

from tests.building.control_plane import prepared
from tests.dynamo_runtime.environment import RuntimeEnvironment, environment_of

from .admission import Admission, admission_platform, bare_control_plane
from .dynadmin import Api, dynadmin
from .lora_workers import Farm, farm
from .namespaces import empty
from .platform import platform, settings

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The source of server programs; the first download or build takes minutes."""
    return Programs()


@pytest.fixture(scope="session")
def dynamo_runtime() -> RuntimeEnvironment:
    """The environment of the real Dynamo runtime. `make test` installs it first, which takes longer than a test may."""
    environment = environment_of()
    if not environment.complete:
        pytest.skip("the Dynamo runtime is not installed: `make test-runtime` does so, or says why it cannot")
    return environment


@pytest.fixture(scope="session")
async def prometheus_program(programs: Programs) -> Path:
    """Prometheus, if it is available on this machine."""
    try:
        return await programs.obtain("prometheus")
    except ProgramUnavailableError as error:
        pytest.skip(f"Prometheus is not to be had here: {error}")


@pytest.fixture(scope="session")
async def control_plane(programs: Programs) -> AsyncIterator[ControlPlane]:
    """etcd, kube-apiserver, controllers, scheduler and two KWOK nodes with eight GPUs each, our CRDs installed."""
    async with ControlPlane(await prepared(programs), programs) as plane:
        yield plane


@pytest.fixture(scope="session")
async def kube(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client with all rights."""
    async with await KubeClient.open(kubeconfig=control_plane.kubeconfig, field_manager="dynamo-tests") as client:
        yield client


@pytest.fixture
async def namespace(control_plane: ControlPlane, kube: KubeClient) -> AsyncIterator[str]:
    """A new namespace.

    It disappears with the control plane; objects that would affect later tests are deleted after the test.
    """
    name = f"test-{os.getpid()}-{next(_numbers)}"
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await empty(control_plane, kube, name)


@pytest.fixture
async def nats_server(programs: Programs, tmp_path: Path) -> AsyncIterator[NatsServer]:
    """A nats-server with JetStream for this test alone."""
    async with NatsServer(await programs.obtain("nats-server"), tmp_path / "nats") as server:
        yield server


@pytest.fixture(scope="module")
async def shared_nats_server(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsServer]:
    """A nats-server with JetStream for a file whose tests share a platform."""
    async with NatsServer(await programs.obtain("nats-server"), tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(scope="module")
async def running_platform(control_plane: ControlPlane, shared_nats_server: NatsServer) -> AsyncIterator[Any]:
    """The watcher and the pod-builder, shared by the tests of a file that only use them."""
    async with platform(settings(control_plane.kubeconfig, shared_nats_server.url)) as up:
        yield up


@pytest.fixture(scope="module")
async def rest_api(control_plane: ControlPlane, shared_nats_server: NatsServer) -> AsyncIterator[Api]:
    """The watcher and dynadmin, shared by the tests of a file that only use them; each test has its own callers."""
    async with dynadmin(control_plane.kubeconfig, shared_nats_server.url, HEARTBEAT="0.2s", RECHECK="0.3s") as up:
        yield up


@pytest.fixture
async def etcd_server(programs: Programs, tmp_path: Path) -> AsyncIterator[EtcdServer]:
    """An etcd for this test alone."""
    async with EtcdServer(await programs.obtain("etcd"), tmp_path / "etcd") as server:
        yield server


@pytest.fixture(scope="session")
async def admission_plane(programs: Programs) -> AsyncIterator[ControlPlane]:
    """etcd and kube-apiserver for tests of admission, because webhooks apply to a whole cluster."""
    async with bare_control_plane(programs) as plane:
        yield plane


@pytest.fixture(scope="session")
async def admission(admission_plane: ControlPlane) -> AsyncIterator[Admission]:
    """The admission service, registered on that control plane and ready."""
    async with admission_platform(admission_plane) as up:
        yield up


@pytest.fixture(scope="session")
async def admission_kube(admission_plane: ControlPlane, admission: Admission) -> AsyncIterator[KubeClient]:
    """A client of that control plane with all rights, as a user other than the platform."""
    async with await KubeClient.open(kubeconfig=admission_plane.kubeconfig, field_manager="dynamo-tests") as client:
        yield client


@pytest.fixture
async def admission_namespace(admission_kube: KubeClient) -> str:
    """A new namespace there; it disappears with the control plane."""
    name = f"test-{os.getpid()}-{next(_numbers)}"
    await admission_kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
async def lora() -> AsyncIterator[Farm]:
    """Workers that load adapters, and the proxy in front of them."""
    async with farm() as started:
        yield started
