"""After a restore from a backup below a running platform, STATE and its readers equal the API server again."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import LocalServer, NatsServer, NatsServerOptions
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACES, ObjectKey, key_of
from dynamo_shared.bus import NatsBus, streams
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.permissions import USERS
from dynamo_shared.bus.server_config import authorization
from dynamo_shared.bus.sizes import MAX_PAYLOAD
from dynamo_shared.kube import KubeClient, KubeError
from dynamo_shared.state import messages
from dynamo_shared.wire import subjects

from tests.building.control_plane import WITHOUT_CONTROLLERS, prepared

from .test_watcher import Bench, graph, reading, watching

CLUSTER = "past"
NAMESPACE = "team"
WITHIN = 60.0
GRAPHS = DYNAMO_GRAPH_DEPLOYMENTS


@pytest.fixture(scope="module")
async def plane(programs: Programs) -> AsyncIterator[ControlPlane]:
    """etcd and API server for these tests alone, because they are restored."""
    async with ControlPlane(await prepared(programs, **WITHOUT_CONTROLLERS), programs) as running:
        yield running


@pytest.fixture(scope="module")
async def server(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsServer]:
    """NATS with one user a service, as in an installation."""
    options = NatsServerOptions(
        authorization=authorization(CLUSTER, dict.fromkeys(USERS, "hush")), max_payload=MAX_PAYLOAD
    )
    program = await programs.obtain("nats-server")
    async with NatsServer(program, tmp_path_factory.mktemp("nats"), options) as running:
        yield running


@pytest.fixture
async def bench(plane: ControlPlane, server: NatsServer) -> AsyncIterator[Bench]:
    async with await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as kube:
        if not [each for each in await kube.list(NAMESPACES) if key_of(each).name == NAMESPACE]:
            await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        async with (
            watching(kube, server.url, CLUSTER, user="watcher", password="hush"),
            reading(kube, NAMESPACE, server.url, cluster=CLUSTER, user="pod-builder", password="hush") as result,
        ):
            await asyncio.wait_for(result.reader.synced(), WITHIN)
            yield result


async def until_equal(bench: Bench) -> dict[str, str]:
    """Return as soon as the reader has the objects of the API server; both by name, uid and resourceVersion."""
    there: dict[str, str] = {}
    here: dict[str, str] = {}
    try:
        async with asyncio.timeout(WITHIN):
            while True:
                try:
                    there = _versions(await bench.kube.list(GRAPHS, NAMESPACE))
                except KubeError:
                    there = {"?": "the API server is away"}
                here = _versions(bench.cache.list(GRAPHS, NAMESPACE))
                if here == there:
                    return here
                await asyncio.sleep(0.1)
    except TimeoutError:
        pytest.fail(f"STATE has {here}, the API server has {there}")


def _versions(objects: list[dict[str, object]]) -> dict[str, str]:
    results = [obj["metadata"] for obj in objects]
    return {each["name"]: f"{each['uid']} {each['resourceVersion']}" for each in results}  # type: ignore[index]


async def copied(server: LocalServer, backup: Path) -> None:
    """Make a backup of a server: a copy of its data."""
    await server.stop()
    shutil.copytree(server.data, backup)
    await server.start()


async def restored(server: LocalServer, backup: Path) -> None:
    await server.wipe()
    shutil.copytree(backup, server.data)
    await server.start()


async def change(bench: Bench, name: str, mark: str) -> None:
    await bench.kube.merge_patch(GRAPHS, ObjectKey(NAMESPACE, name), {"metadata": {"labels": {"mark": mark}}})


@pytest.mark.restart
async def test_state_equals_the_api_server_after_the_cluster_is_restored_from_a_backup(
    plane: ControlPlane, bench: Bench, tmp_path: Path
) -> None:
    await bench.create("kept", "deleted-later")
    await copied(plane.etcd, tmp_path / "etcd")
    before = await until_equal(bench)
    for number in range(30):
        await change(bench, "kept", str(number))
    await bench.delete("deleted-later")
    await bench.create("created-later")
    assert set(await until_equal(bench)) == {"kept", "created-later"}
    await plane.api_server.stop()
    await restored(plane.etcd, tmp_path / "etcd")
    await plane.api_server.start()
    assert await until_equal(bench) == before
    # Versions of new changes existed before the restore; they must count all the same.
    await change(bench, "kept", "after")
    await bench.create("created-later")
    assert set(await until_equal(bench)) == {"kept", "deleted-later", "created-later"}


@pytest.mark.restart
async def test_state_equals_the_api_server_after_nats_storage_is_restored(
    bench: Bench, server: NatsServer, tmp_path: Path
) -> None:
    """STATE has as many messages as before, but outdated ones."""
    await bench.create("one", "two")
    await until_equal(bench)
    await copied(server, tmp_path / "nats")
    await change(bench, "one", "later")
    await bench.delete("two")
    await bench.create("three")
    await until_equal(bench)
    await restored(server, tmp_path / "nats")
    await asyncio.sleep(0)
    await _until_read_again(bench, server)
    assert {"one", "three"} <= set(await until_equal(bench))


async def _until_read_again(bench: Bench, server: NatsServer) -> None:
    """Wait until STATE itself, not only the reader's cache, equals the API server."""
    bus = await NatsBus.connect(servers=(server.url,), user="watcher", password="hush")
    try:
        async with asyncio.timeout(WITHIN):
            while True:
                expected = _versions(await bench.kube.list(GRAPHS, NAMESPACE))
                # The server comes back first, and then the stream.
                with suppress(BusUnavailableError):
                    results = {}
                    for name in {*expected, "two"}:
                        subject = subjects.state_subject(CLUSTER, GRAPHS.id, ObjectKey(NAMESPACE, name))
                        message = await bus.last_message(streams.STATE, subject)
                        if message is not None and not messages.is_tombstone(message.headers):
                            results[name] = f"{message.headers['uid']} {message.headers['resourceVersion']}"
                    if results == expected:
                        return
                await asyncio.sleep(0.2)
    finally:
        await bus.close()


async def test_an_object_as_large_as_the_api_server_accepts(bench: Bench) -> None:
    """Text that does not compress well, above NATS' default limit of 1 MiB."""
    import random

    text = "".join(
        random.Random(7).choices("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/", k=1_440_000)
    )
    large = graph(NAMESPACE, "large")
    large["spec"]["annotations"] = {"text": text[:1_000]}
    large["spec"]["components"][0]["podTemplate"] = {
        "spec": {"containers": [{"name": "main", "image": "x", "args": [text]}]}
    }
    await bench.kube.create(GRAPHS, large)
    await until_equal(bench)
    observed = bench.cache.get(GRAPHS, ObjectKey(NAMESPACE, "large"))
    assert observed is not None
    assert text in str(observed["spec"])
