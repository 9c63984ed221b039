"""What is broken in a round: a replica killed, another stopped for 15 s, and one of the servers."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from dynamo_devcluster.servers import LocalServer

from tests.stage.cluster import Stage

#: Longer than a lease lives. Seconds.
STOPPED_FOR = 15.0
AWAY = 2.0


class Copies:
    """Data of servers as they were earlier in the round, to be set back to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, name: str, data: Path) -> None:
        """Keep a copy; the server does not run."""
        shutil.rmtree(self._folder / name, ignore_errors=True)
        shutil.copytree(data, self._folder / name)

    def restore(self, name: str, data: Path) -> None:
        """Put the copy in the place of the data."""
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(self._folder / name, data)


async def kill(stage: Stage, name: str, replica: int) -> None:
    """Kill a replica, and start it again a little later."""
    service = stage.named(name)[replica]
    await service.process.kill()
    await asyncio.sleep(AWAY)
    await service.process.start()


async def stop_for_a_while(stage: Stage, name: str, replica: int) -> None:
    """Stop a replica as a paused machine would be, and let it go on."""
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


async def _set_back(server: LocalServer, name: str, copies: Copies) -> None:
    """The server comes back with what it had some seconds ago."""
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
    """The cluster is restored from a backup that is some seconds old; its controllers restart, those of the platform do not."""
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

#: By name; those after which events may be missing or graphs may be others than those that work knew are named below.
SERVERS: dict[str, Fault] = {
    "NATS killed": lambda stage, _: _killed(stage.nats),
    "etcd killed": lambda stage, _: _killed(stage.etcd),
    "API server killed": lambda stage, _: _api_restarted(stage),
    "NATS wiped": lambda stage, _: _wiped(stage.nats),
    "etcd wiped": lambda stage, _: _wiped(stage.etcd),
    "cluster restored": _api_restored,
    "NATS set back": lambda stage, copies: _set_back(stage.nats, "nats", copies),
    "etcd set back": lambda stage, copies: _set_back(stage.etcd, "etcd", copies),
}
LOSES_EVENTS = frozenset({"NATS wiped", "NATS set back", "cluster restored"})
