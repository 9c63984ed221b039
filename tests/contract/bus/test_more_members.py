"""One NATS server grows to three: the streams keep their messages and get replicas (docs/high-availability.md)."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import nats
import pytest
from dynamo_devcluster import Programs, free_port
from dynamo_devcluster.ports import LOOPBACK
from dynamo_devcluster.probe import LocalHttp
from dynamo_devcluster.servers import LocalServer
from dynamo_shared.bus import streams
from dynamo_shared.bus.errors import BusUnavailableError, StreamNotFoundError
from dynamo_shared.bus.nats import NatsBus
from dynamo_shared.wire import subjects

#: The first server, with the name and the tag that the chart gives it.
FIRST = "dynamo-platform-nats-0"
NAMES = (FIRST, "dynamo-platform-nats-1", "dynamo-platform-nats-2")
MESSAGES = 50
WITHIN = 60


class Members:
    """Three servers; the first may run alone, with its data, before the others exist."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._ports = {name: [free_port() for _ in range(3)] for name in NAMES}

    def url(self, name: str) -> str:
        """The address of a member for clients."""
        return f"nats://{LOOPBACK}:{self._ports[name][0]}"

    def member(self, name: str, *, alone: bool = False) -> LocalServer:
        """A server that is not started yet."""
        client, routes, monitoring = self._ports[name]
        configuration = {
            "server_name": name,
            "server_tags": [name],
            "listen": f"{LOOPBACK}:{client}",
            "http": f"{LOOPBACK}:{monitoring}",
            "jetstream": {"store_dir": str(self._folder / name)},
        }
        if not alone:
            others = [f"nats://{LOOPBACK}:{ports[1]}" for ports in self._ports.values()]
            configuration["cluster"] = {"name": "nats", "listen": f"{LOOPBACK}:{routes}", "routes": others}
        file = self._folder / f"{name}.conf"
        file.write_text(json.dumps(configuration))
        http = LocalHttp(monitoring)
        command: list[str | Path] = [self._program, "--config", file, "--no_advertise"]
        log = self._folder / f"{name}.log"
        return LocalServer(name, command, log, lambda: http.ok("/healthz?js-server-only=true"))


@pytest.fixture
async def members(tmp_path: Path) -> Members:
    return Members(await Programs().obtain("nats-server"), tmp_path)


async def connected(members: Members, replicas: int) -> NatsBus:
    servers = tuple(members.url(name) for name in (NAMES if replicas > 1 else (FIRST,)))
    return await NatsBus.connect(servers=servers, replicas=replicas, first_member=FIRST, wait=WITHIN)


async def declared(bus: NatsBus) -> None:
    """Declare the streams; retry while a member is away, as the watcher does."""
    async with asyncio.timeout(WITHIN):
        while True:
            try:
                return await bus.declare(*streams.ALL)
            except BusUnavailableError:
                await asyncio.sleep(0.5)


async def copied(members: Members) -> None:
    """Wait until each stream has three replicas, all of them complete."""
    client = await nats.connect(members.url(FIRST))
    try:
        async with asyncio.timeout(WITHIN):
            for spec in streams.ALL:
                while True:
                    info = await client.jetstream().stream_info(spec.name)
                    current = [each for each in (info.cluster and info.cluster.replicas) or () if each.current]
                    if len(current) == 2 and info.config.num_replicas == 3:
                        break
                    await asyncio.sleep(0.2)
    finally:
        await client.close()


async def test_events_survive_and_are_replicated_when_one_server_becomes_three(members: Members) -> None:
    """NATS used to delete all streams of the single server half a minute after it had joined the cluster."""
    async with members.member(FIRST, alone=True):
        bus = await connected(members, replicas=1)
        await declared(bus)
        for number in range(MESSAGES):
            await bus.publish(f"{subjects.EVENT_PREFIX}.c.a.b.{number}", b"{}")
        await bus.close()
    async with AsyncExitStack() as stack:
        for name in NAMES[1:]:
            await stack.enter_async_context(members.member(name))
        bus = await connected(members, replicas=3)
        stack.push_async_callback(bus.close)
        with pytest.raises(BusUnavailableError):
            await bus.declare(*streams.ALL)
        async with members.member(FIRST):
            await declared(bus)
            await copied(members)
        # Without the first server, which had all of them; the others need a moment to elect a leader.
        async with asyncio.timeout(WITHIN):
            while True:
                try:
                    more = await bus.publish(f"{subjects.EVENT_PREFIX}.c.a.b.more", b"{}", msg_id="more")
                    break
                except (BusUnavailableError, StreamNotFoundError):
                    await asyncio.sleep(0.5)
        assert more.sequence == MESSAGES + 1
        assert (await bus.stream_state(streams.EVENTS)).messages == MESSAGES + 1


async def test_streams_of_three_new_servers_have_three_replicas(members: Members) -> None:
    async with AsyncExitStack() as stack:
        async with asyncio.TaskGroup() as tasks:
            for name in NAMES:
                tasks.create_task(stack.enter_async_context(members.member(name)))
        bus = await connected(members, replicas=3)
        stack.push_async_callback(bus.close)
        await declared(bus)
        # Simulates the watcher's audit: it adds missing replicas.
        await declared(bus)
        await copied(members)
