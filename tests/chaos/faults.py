"""The faults of a round: a replica is killed, another is stopped for 15 s, and one of the servers is broken."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from dynamo_devcluster.servers import LocalServer

from tests.stage.cluster import Stage

#: Longer than the duration of a lease. Seconds.
STOPPED_FOR = 15.0
AWAY = 2.0


class Copies:
    """Copies of servers' data from earlier in the round, to restore."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, name: str, data: Path) -> None:
        """Copy the data of a server that does not run."""
        shutil.rmtree(self._folder / name, ignore_errors=True)
        shutil.copytree(data, self._folder / name)

    def restore(self, name: str, data: Path) -> None:
        """Replace the data by the copy."""
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(self._folder / name, data)


async def kill(stage: Stage, name: str, replica: int) -> None:
    """Kill a replica, and start it again a little later."""
    service = stage.named(name)[replica]
    await service.process.kill()
    await asyncio.sleep(AWAY)
    await service.process.start()


async def stop_for_a_while(stage: Stage, name: str, replica: int) -> None:
    """Stop a replica as if its machine were paused, and let it continue."""
    service = stage.named(name)[replica]
    await service.process.suspend()
    try:
        await asyncio.sleep(STOPPED_FOR)
    finally:
        service.process.resume()


async def _killed(server: LocalServer) -> None:
    await server.kill()
    await asyncio.sleep(AWAY)
    await server.start()


async def _wiped(server: LocalServer) -> None:
    await server.wipe()
    await server.start()


async def _restore(server: LocalServer, name: str, copies: Copies) -> None:
    """The server comes back with its data of some seconds ago."""
    await server.stop()
    copies.take(name, server.data)
    await server.start()
    await asyncio.sleep(5)
    await server.stop()
    copies.restore(name, server.data)
    await server.start()


async def _api_restarted(stage: Stage) -> None:
    await stage.plane.api_server.kill()
    await asyncio.sleep(AWAY)
    await stage.plane.api_server.start()


async def _api_restored(stage: Stage, copies: Copies) -> None:
    """The cluster is restored from a backup of some seconds ago; its controllers restart, the services do not."""
    plane = stage.plane
    controllers = [each for each in (plane.controller_manager, plane.scheduler, plane.kwok) if each is not None]
    await plane.api_server.kill()
    await plane.etcd.stop()
    copies.take("cluster", plane.etcd.data)
    await plane.etcd.start()
    await plane.api_server.start()
    await asyncio.sleep(6)
    await asyncio.gather(*(each.kill() for each in controllers))
    await plane.api_server.kill()
    await plane.etcd.stop()
    copies.restore("cluster", plane.etcd.data)
    await plane.etcd.start()
    await plane.api_server.start()
    await asyncio.gather(*(each.start() for each in controllers))


Fault = Callable[[Stage, Copies], Awaitable[None]]

#: By name. The sets below name faults after which events may be missing, or graphs may differ from what `Work` expects.
SERVERS: dict[str, Fault] = {
    "NATS killed": lambda stage, _: _killed(stage.nats),
    "etcd killed": lambda stage, _: _killed(stage.etcd),
    "API server killed": lambda stage, _: _api_restarted(stage),
    "NATS wiped": lambda stage, _: _wiped(stage.nats),
    "etcd wiped": lambda stage, _: _wiped(stage.etcd),
    "cluster restored": _api_restored,
    "NATS restored": lambda stage, copies: _restore(stage.nats, "nats", copies),
    "etcd restored": lambda stage, copies: _restore(stage.etcd, "etcd", copies),
}
LOSES_EVENTS = frozenset({"NATS wiped", "NATS restored", "cluster restored"})
