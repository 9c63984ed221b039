"""A replica that ends: not ready first, then it serves on for a while, ends its streams, and finishes what is under way."""

import asyncio
from typing import Any, cast

import aiohttp
import pytest
from dynamo_dynadmin.app import READS, DynadminService
from dynamo_shared.bus import streams
from dynamo_shared.leases import AlwaysLeader
from dynamo_shared.runtime import Health, ServiceContext, load_settings
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.state.publisher import StatePublisher

from tests.building.memory_bus import MemoryBus
from tests.building.tasks import in_background
from tests.building.waiting import until

SETTINGS = {"HOST": "127.0.0.1", "PORT": "0", "DRAIN": "15s"}


class Kube:
    """An API server that knows every token and allows all, and answers lists of namespaces once it may."""

    def __init__(self) -> None:
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    def acting_as(self, _: str) -> Any:
        return self

    def for_identity(self, *_: Any, **__: Any) -> Any:
        return self

    async def create(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"status": {"allowed": True, "authenticated": True, "user": {"username": "ann"}}}

    async def list_names(self, *_: Any, **__: Any) -> tuple[list[str], bool]:
        self.asked.set()
        await self.may_answer.wait()
        return ["team"], False


class Pause:
    """The time of draining, which passes when the test says so."""

    def __init__(self) -> None:
        self.lengths: list[float] = []
        self.over = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.lengths.append(seconds)
        await self.over.wait()


async def test_a_replica_that_ends_serves_until_others_have_taken_over() -> None:
    bus, kube, health, pause = MemoryBus(), Kube(), Health(), Pause()
    settings = load_settings(None, {f"DYNAMO_PLATFORM__DYNADMIN__{name}": value for name, value in SETTINGS.items()})
    context = ServiceContext(
        settings, cast("Any", kube), bus, health, Metrics(), lambda _: cast("Any", None), lambda _: AlwaysLeader()
    )
    await bus.declare(*streams.ALL)
    publisher = StatePublisher(bus, settings.platform.cluster_name)
    service = DynadminService(pause=pause)
    health.expect(service.name)
    headers = {"Authorization": "Bearer mine"}
    async with in_background(publisher.run()), aiohttp.ClientSession(headers=headers) as session:
        await publisher.load(READS)
        for resource in READS:
            await publisher.mark_synced(resource, "1")
        running = asyncio.create_task(service.run(context))
        await until(lambda: health.ready_part(service.name))
        url = f"http://127.0.0.1:{service.port}/api/v1"
        under_way = asyncio.create_task(_status(session, f"{url}/namespaces"))
        await kube.asked.wait()
        watched = await session.get(f"{url}/namespaces/team/deployments?watch=true")
        assert watched.status == 200

        running.cancel()
        await until(lambda: pause.lengths)
        assert pause.lengths == [15.0]
        assert not health.ready_part(service.name)
        async with session.get(f"{url}/me") as answer:
            assert (answer.status, answer.headers["Connection"]) == (200, "close")
        async with session.get(f"{url}/namespaces/team/deployments?watch=true") as answer:
            assert (answer.status, (await answer.json())["detail"]) == (
                503,
                "this replica is shutting down; retry with another one",
            )
        assert not running.done()

        pause.over.set()
        assert [line for line in (await watched.text()).splitlines() if line][-2:] == [
            "event: error",
            'data: {"detail":"this replica is shutting down; open the stream again"}',
        ]
        kube.may_answer.set()
        assert await under_way == 200
        with pytest.raises(asyncio.CancelledError):
            await running
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"{url}/me")


async def _status(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url) as answer:
        return answer.status
