"""Several clusters with one NATS each feed one integrator as leaf nodes of a hub (docs/several-nats.md)."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import nats.errors
import pytest
from dynamo_devcluster import ControlPlane, NatsServer, NatsServerOptions, Programs, free_port
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.bus import permissions, server_config
from dynamo_shared.kube import KubeClient
from dynamo_shared.wire.subjects import inbox_prefix
from nats.js.api import ExternalStream, StreamConfig, StreamSource

from tests.building.control_plane import WITHOUT_CONTROLLERS, prepared

from .platform import eventually, graph, platform, settings

pytestmark = pytest.mark.long

CLUSTERS = ("east", "west")
PAGE = Path(__file__).parents[2] / "docs" / "several-nats.md"
EVENTS = "DYNAMO_EVENTS"
#: Subjects that the hub's users may not send to a cluster, because they may only read events: the list of docs/several-
#: nats.md.
NOTHING_BUT_READING = tuple(
    re.findall(r'"([^"]+)"', re.search(r"deny_imports: \[(.*?)\]", PAGE.read_text(), re.DOTALL)[1])  # type: ignore[index]
)
#: Requests of the hub's users that must reach no cluster: they change something, or read more than events.
REFUSED: dict[str, Any] = {
    f"STREAM.PURGE.{EVENTS}": None,
    f"STREAM.DELETE.{EVENTS}": None,
    f"STREAM.UPDATE.{EVENTS}": None,
    "STREAM.MSG.GET.DYNAMO_STATE": {"seq": 1},
    "DIRECT.GET.DYNAMO_STATE": {"seq": 1},
    "CONSUMER.NAMES.DYNAMO_STATE": None,
    "CONSUMER.CREATE.DYNAMO_STATE": {"stream_name": "DYNAMO_STATE", "config": {"ack_policy": "none"}},
    "CONSUMER.CREATE.DYNAMO_STATE.mine": {"stream_name": "DYNAMO_STATE", "config": {"name": "mine"}},
    "CONSUMER.DURABLE.CREATE.DYNAMO_STATE.mine": {"stream_name": "DYNAMO_STATE", "config": {"durable_name": "mine"}},
    "CONSUMER.INFO.DYNAMO_COMMANDS.east-scaler": None,
    "CONSUMER.MSG.NEXT.DYNAMO_COMMANDS.east-scaler": {"batch": 1, "no_wait": True},
    "CONSUMER.DELETE.DYNAMO_COMMANDS.east-scaler": None,
}


@dataclass
class Cluster:
    """A Kubernetes control plane, its NATS and a platform on them."""

    name: str
    kube: KubeClient
    nats: NatsServer


@dataclass
class World:
    """All clusters, the hub, and the integrator's only connection."""

    clusters: list[Cluster]
    hub: Any

    async def of(self, name: str) -> list[dict[str, Any]]:
        """Stored events in the hub about graphs of a name, each with its subject."""
        subject, jetstream = f"dynamo.evt.v1.*.*.dynamographdeployment.{name}.*", self.hub.jetstream()
        kept = (await jetstream.stream_info(EVENTS, subjects_filter=subject)).state.subjects or {}
        subscription = await jetstream.subscribe(subject, stream=EVENTS, ordered_consumer=True)
        try:
            messages = [await subscription.next_msg(timeout=30) for _ in range(sum(kept.values()))]
        finally:
            await subscription.unsubscribe()
        return [{"at": each.subject, **json.loads(each.data)} for each in messages]

    async def until(self, name: str, event: str, clusters: set[str]) -> list[dict[str, Any]]:
        """The events of that kind, as soon as all these clusters have sent theirs."""

        async def check() -> list[dict[str, Any]]:
            return [each for each in await self.of(name) if each["at"].endswith(f".{event}")]

        def right(events: list[dict[str, Any]]) -> bool:
            return {each["at"].split(".")[3] for each in events} >= clusters

        return list(await eventually(check, f"{event} of {clusters}", where=right))


async def create(cluster: Cluster, name: str) -> None:
    await cluster.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("default", name))


async def _cluster(stack: AsyncExitStack, folder: Path, name: str, hub_port: int) -> Cluster:
    programs = Programs()
    plane = await stack.enter_async_context(ControlPlane(await prepared(programs, **WITHOUT_CONTROLLERS), programs))
    password = f"password of {name}"
    remote = {"url": f"nats://leaf:hub-password@127.0.0.1:{hub_port}", "deny_imports": list(NOTHING_BUT_READING)}
    server = await stack.enter_async_context(
        NatsServer(
            await programs.obtain("nats-server"),
            folder / name,
            NatsServerOptions(
                domain=name,
                authorization=server_config.authorization(name, {"platform": password}),
                leafnodes={"reconnect": "1s", "remotes": [remote]},
            ),
        )
    )
    (folder / f"{name}.password").write_text(password)
    configured = settings(
        plane.kubeconfig,
        server.url,
        PLATFORM__CLUSTER_NAME=name,
        PLATFORM__NATS__USER="platform",
        PLATFORM__NATS__PASSWORD_FILE=str(folder / f"{name}.password"),
    )
    await stack.enter_async_context(platform(configured))
    kube = await stack.enter_async_context(
        await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests")
    )
    return Cluster(name, kube, server)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        port = free_port()
        hub = await stack.enter_async_context(
            NatsServer(
                await Programs().obtain("nats-server"),
                tmp_path / "hub",
                NatsServerOptions(
                    domain="hub",
                    leafnodes={
                        "listen": f"127.0.0.1:{port}",
                        "authorization": {"user": "leaf", "password": "hub-password"},
                    },
                ),
            )
        )
        clusters = [await _cluster(stack, tmp_path, name, port) for name in CLUSTERS]
        connection = await nats.connect(hub.url, inbox_prefix=inbox_prefix(permissions.EVENT_READER).encode())
        stack.push_async_callback(connection.close)
        sources = [
            StreamSource(name=EVENTS, external=ExternalStream(api=f"$JS.{name}.API", deliver=f"deliver.{name}"))
            for name in CLUSTERS
        ]
        await connection.jetstream().add_stream(StreamConfig(name=EVENTS, sources=sources))
        yield World(clusters, connection)


async def test_one_integrator_gets_the_events_of_all_clusters_including_missed_ones(world: World) -> None:
    east, west = world.clusters
    for cluster in world.clusters:
        await create(cluster, "same-name")
    results = await world.until("same-name", "created", set(CLUSTERS))
    # Namespace and name are the same: subject and source distinguish the clusters.
    assert len(results) == len({each["id"] for each in results}) == len({each["source"] for each in results}) == 2

    # A NATS that is down does not delay events of other clusters; its own arrive when it is back.
    await east.nats.kill()
    await create(east, "meanwhile")
    await create(west, "meanwhile")
    await world.until("meanwhile", "created", {"west"})
    await east.nats.start()
    await world.until("meanwhile", "created", set(CLUSTERS))


async def test_the_hub_reads_events_and_changes_nothing_in_a_cluster(world: World) -> None:
    east = world.clusters[0]
    await create(east, "stays")
    await world.until("stays", "created", {"east"})
    for subject in (
        "dynamo.state.v1.east.dynamographdeployments%2Envidia%2Ecom.default.stays",
        "dynamo.evt.v1.east.default.dynamographdeployment.stays.forged",
        "dynamo.cmd.v1.east.default.scaler.scale",
    ):
        await world.hub.publish(subject, b"{}")
    for user in permissions.USERS:
        # Answers to services: the hub does not even learn which services exist.
        assert f"{inbox_prefix(user)}.>" in NOTHING_BUT_READING
    for request, body in REFUSED.items():
        try:
            answer = await world.hub.request(
                f"$JS.east.API.{request}", json.dumps(body).encode() if body else b"", timeout=1
            )
        except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
            continue
        pytest.fail(f"{request} is answered: {answer.data[:300]!r}")
    await create(east, "afterwards")
    await world.until("afterwards", "created", {"east"})
    assert [each for each in await world.of("stays") if each["at"].endswith(".created")]
    assert not [each for each in await world.of("stays") if each["at"].endswith(".forged")]
    assert await east.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("default", "stays"))
