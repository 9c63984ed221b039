"""What a replica keeps of its partitions when the part that watches over them fails."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases.client import KeyValue, Snapshot
from dynamo_shared.leases.gains import GainLog
from dynamo_shared.leases.partitions import Partitions
from dynamo_shared.leases.rendezvous import PARTITIONS, SCHEME
from structlog.testing import capture_logs

LEASE = 7


class Client:
    """All partitions are claimed under LEASE, and the watch fails when a test says so."""

    def __init__(self) -> None:
        self.failing = asyncio.Event()

    async def read(self, prefix: str) -> Snapshot:
        keys = [f"{prefix}{number}" for number in range(PARTITIONS)]
        return Snapshot(1, {key: KeyValue(key, b"", LEASE, 1) for key in keys})

    @asynccontextmanager
    async def watch(self, _prefix: str, _start: int) -> AsyncIterator[AsyncIterator[int]]:
        await self.failing.wait()
        raise RuntimeError("a bug")
        yield


async def test_partitions_are_dropped_where_their_watch_fails() -> None:
    """One that was to be given away would be worked on by no replica: no one would wait for its end any more."""
    client, members = Client(), {"a": SCHEME, "b": SCHEME}
    registry: Any = SimpleNamespace(replica="a", members=lambda: members, on_change=lambda _: None)
    lease = SimpleNamespace(id=LEASE, alive=lambda: True, on_change=lambda _: None)
    session: Any = SimpleNamespace(client=client, lease=lease, epoch=None, prefix="/p")
    partitions = Partitions(session, registry, "service", GainLog())
    draining = asyncio.Event()
    lost: list[frozenset[int]] = []

    async def drain(_: Callable[[ObjectKey], bool]) -> None:
        draining.set()
        await asyncio.Event().wait()

    partitions.before_release(drain)
    partitions.on_loss(lambda: lost.append(partitions.keeps()))
    running = asyncio.create_task(partitions.run())
    async with asyncio.timeout(60):
        await draining.wait()
        client.failing.set()
        with pytest.raises(ExceptionGroup):
            await running
    assert lost == [frozenset()]


async def test_what_services_gain_together_is_one_line() -> None:
    gains = GainLog()
    with capture_logs() as lines:
        for service in ("scaler", "planner"):
            gains.add(service, range(PARTITIONS))
        gains.add("watcher", [1, 2, 7])
        assert not lines
        gains.write()
        gains.write()
    assert [(line["services"], line["partitions"]) for line in lines] == [
        (["scaler", "planner"], "0-31"),
        (["watcher"], "1-2, 7"),
    ]
