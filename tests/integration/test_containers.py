"""The official images of NATS and etcd, started by testcontainers if a container engine is available.

CONTRIBUTING.md says why other tests start programs.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import docker  # type: ignore[import-untyped]
import pytest
from docker.errors import DockerException, ImageNotFound  # type: ignore[import-untyped]
from dynamo_shared.bus import streams
from dynamo_shared.bus.nats import NatsBus
from dynamo_shared.leases.channel import EtcdOptions
from dynamo_shared.leases.client import EtcdClient

from tests.containers.stand_ins import ETCD, NATS

#: Docker's socket, and podman's for root (`podman system service --time=0`).
SOCKETS = (Path("/var/run/docker.sock"), Path("/run/podman/podman.sock"))
#: An image may have to be pulled.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    address = os.environ.get("DOCKER_HOST") or next((f"unix://{path}" for path in SOCKETS if path.is_socket()), "")
    if not address:
        pytest.skip("no container engine answers: neither DOCKER_HOST nor the socket of Docker or podman is there")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", address)
        # Containers end with their tests, and testcontainers' reaper would need another image.
        patch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
        # By published ports, even if these tests themselves run in a container.
        patch.setenv("TESTCONTAINERS_CONNECTION_MODE", "docker_host")
        try:
            client = docker.DockerClient(base_url=address, timeout=60)
            client.ping()
        except DockerException as error:
            pytest.skip(f"no container engine answers at {address}: {error}")
        yield client
        client.close()


def obtained(engine: docker.DockerClient, image: str) -> str:
    """The image, which may have to be pulled."""
    try:
        engine.images.get(image)
    except ImageNotFound:
        try:
            engine.images.pull(image)
        except DockerException as error:
            pytest.skip(f"{image} is not here and cannot be pulled: {error}")
    return image


async def test_the_bus_declares_its_streams_on_nats_in_a_container(engine: docker.DockerClient) -> None:
    from testcontainers.community.nats import NatsContainer

    with NatsContainer(obtained(engine, NATS), jetstream=True) as server:
        bus = await NatsBus.connect(servers=(server.nats_uri(),), name="containers")
        try:
            await bus.wait_connected()
            await bus.declare(streams.EVENTS)
            assert (await bus.stream_state(streams.EVENTS)).messages == 0
        finally:
            await bus.close()


async def test_leases_are_kept_in_etcd_in_a_container(engine: docker.DockerClient) -> None:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    command = "etcd --listen-client-urls=http://0.0.0.0:2379 --advertise-client-urls=http://0.0.0.0:2379"
    container = DockerContainer(obtained(engine, ETCD)).with_exposed_ports(2379).with_command(command)
    with container.waiting_for(LogMessageWaitStrategy("ready to serve client requests")) as server:
        url = f"http://{server.get_container_host_ip()}:{server.get_exposed_port(2379)}"
        async with EtcdClient(EtcdOptions(endpoints=(url,))) as client:
            await client.put("/test/containers", b"here")
            observed = await client.get("/test/containers")
            assert observed is not None
            assert observed.value == b"here"
