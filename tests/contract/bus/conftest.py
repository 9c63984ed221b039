"""Both buses, the NATS one on a real server of its own, with a way to break each of them in the same manner."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

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
        await self.server.stop()


@pytest.fixture(params=["memory", "nats"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    if request.param == "memory":
        memory = MemoryRig()
        yield memory
        await memory.close()
        return
    server = NatsServer(await Programs().obtain("nats-server"), tmp_path)
    await server.start()
    rig = NatsRig(server, await NatsBus.connect(servers=(server.url,), name="conformance", wait=60))
    yield rig
    await rig.close()


@pytest.fixture
def bus(rig: Rig) -> Bus:
    return rig.bus
