"""Fixtures for both buses, the NATS one with a real server, and one way to break each of them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

import nats
import pytest
from dynamo_devcluster import NatsServer, Programs
from dynamo_shared.bus import Bus, BusHealth
from dynamo_shared.bus.nats import NatsBus

from tests.building.memory_bus import MemoryBus


class Rig(Protocol):
    """A bus and the server behind it."""

    bus: Bus

    async def stop(self) -> None: ...

    async def start(self) -> None: ...

    async def lose_data(self) -> None: ...

    async def another(self) -> Bus: ...

    async def until_degraded(self) -> None: ...


class MemoryRig:
    def __init__(self) -> None:
        self.memory = MemoryBus()
        self.bus: Bus = self.memory

    async def stop(self) -> None:
        self.memory.disconnect()

    async def start(self) -> None:
        self.memory.reconnect()

    async def lose_data(self) -> None:
        self.memory.lose_data()

    async def another(self) -> Bus:
        return self.memory

    async def until_degraded(self) -> None:
        assert self.bus.health is BusHealth.DEGRADED

    async def close(self) -> None:
        await self.memory.close()


class NatsRig:
    def __init__(self, server: NatsServer, bus: Bus) -> None:
        self.server = server
        self.bus = bus
        self.others: list[Bus] = []

    async def stop(self) -> None:
        await self.server.kill()

    async def start(self) -> None:
        await self.server.start()
        await self.bus.wait_connected()

    async def lose_data(self) -> None:
        await self.server.wipe()

    async def another(self) -> Bus:
        bus = await NatsBus.connect(servers=(self.server.url,), name="another", wait=60)
        self.others.append(bus)
        return bus

    async def until_degraded(self) -> None:
        degraded = asyncio.Event()
        self.bus.on_health(lambda health: degraded.set() if health is BusHealth.DEGRADED else None)
        if self.bus.health is BusHealth.CONNECTED:
            await asyncio.wait_for(degraded.wait(), 60)

    async def close(self) -> None:
        for bus in (*self.others, self.bus):
            await bus.close()
        await self.server.start()
        client = await nats.connect(self.server.url)
        for stream in await client.jetstream().streams_info():
            await client.jetstream().delete_stream(str(stream.config.name))
        await client.close()


@pytest.fixture(scope="session")
async def nats_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsServer]:
    """Not started; all tests that use it share it, because a start takes as long as most of them."""
    server = NatsServer(await Programs().obtain("nats-server"), tmp_path_factory.mktemp("nats"))
    yield server
    await server.stop()


@pytest.fixture(params=["memory", "nats"])
async def rig(request: pytest.FixtureRequest, nats_server: NatsServer) -> AsyncIterator[Rig]:
    if request.param == "memory":
        memory = MemoryRig()
        yield memory
        await memory.close()
        return
    await nats_server.start()
    rig = NatsRig(nats_server, await NatsBus.connect(servers=(nats_server.url,), name="conformance", wait=60))
    yield rig
    await rig.close()


@pytest.fixture
def bus(rig: Rig) -> Bus:
    return rig.bus
