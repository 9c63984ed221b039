"""A replica's partitions when the task that watches them fails."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases import partitions as partition_claims
from dynamo_shared.leases.client import KeyValue, Snapshot
from dynamo_shared.leases.partitions import GainLog, Partitions
from dynamo_shared.leases.rendezvous import PARTITIONS, SCHEME, partition_of
from structlog.testing import capture_logs

from tests.building.tasks import in_background
from tests.building.waiting import until

LEASE = 7


class Client:
    """All partitions are claimed under LEASE, and the watch fails when a test says so."""

    def __init__(self) -> None:
        self.failing = asyncio.Event()
        self.deleted: set[int] = set()

    async def read(self, prefix: str) -> Snapshot:
        keys = [f"{prefix}{number}" for number in range(PARTITIONS) if number not in self.deleted]
        return Snapshot(1, {key: KeyValue(key, b"", LEASE, 1) for key in keys})

    async def delete_held(self, key: str, **_: int) -> None:
        self.deleted.add(int(key.rpartition("/")[2]))

    @asynccontextmanager
    async def watch(self, _prefix: str, _start: int) -> AsyncIterator[AsyncIterator[int]]:
        await self.failing.wait()
        raise RuntimeError("a bug")
        yield


def of_two(client: Client) -> Partitions:
    """The partitions of one of two replicas, which has all at first and gives half of them away."""
    members = {"a": SCHEME, "b": SCHEME}
    registry: Any = SimpleNamespace(replica="a", members=lambda: members, on_change=lambda _: None)
    lease = SimpleNamespace(
        id=LEASE, alive=lambda: True, on_change=lambda _: None, check=lambda: None, note=lambda *_: None
    )
    session: Any = SimpleNamespace(client=client, lease=lease, epoch=None, prefix="/p")
    return Partitions(session, registry, "service", GainLog())


@pytest.mark.parametrize("ends", [True, False], ids=["work ends", "work fails"])
async def test_partitions_are_given_away_after_the_work_on_them_has_ended(ends: bool) -> None:
    """Work that cannot be awaited is cancelled first. Partitions that stay are not drained."""
    client = Client()
    partitions = of_two(client)
    keys = {partition_of(key): key for key in (ObjectKey(f"ns-{number}", "a") for number in range(1000))}
    drained: set[int] = set()
    cut_off: list[set[int]] = []

    async def drain(concerns: Callable[[ObjectKey], bool]) -> None:
        await asyncio.sleep(0)
        assert not client.deleted
        drained.update(partition for partition, key in keys.items() if concerns(key))
        if not ends:
            raise RuntimeError("a bug")

    partitions.before_release(drain)
    partitions.on_loss(lambda: cut_off.append(set(client.deleted)))
    async with in_background(partitions.run()):
        await until(lambda: bool(client.deleted))
    assert client.deleted == drained == set(range(PARTITIONS)) - partitions.held
    assert 0 < len(drained) < PARTITIONS
    assert cut_off == ([] if ends else [set()])


async def test_keys_of_a_partition_that_stays_after_all_are_not_dropped() -> None:
    """The other replica left again during the drain: all keys of the partition are queued again."""
    partitions = of_two(Client())
    keys = [ObjectKey(f"ns-{number}", "a") for number in range(200)]
    drains: list[Callable[[ObjectKey], bool]] = []

    async def drain(concerns: Callable[[ObjectKey], bool]) -> None:
        drains.append(concerns)
        await asyncio.Event().wait()

    partitions.before_release(drain)
    async with in_background(partitions.run()):
        await until(lambda: bool(drains))
        assert any(map(drains[0], keys))
        del partitions._registry.members()["b"]
        partitions._view.wake()
        await until(lambda: len(partitions.held) == PARTITIONS)
        assert not any(map(drains[0], keys))


async def test_work_ends_if_its_claim_is_gone_before_its_partition_is_given_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the server's data, or with a lease that expired while the process was paused: another replica may work."""
    monkeypatch.setattr(partition_claims, "DRAIN_WITHIN", 3600.0)
    client = Client()
    partitions = of_two(client)
    draining, lost = asyncio.Event(), asyncio.Event()

    async def drain(_: Callable[[ObjectKey], bool]) -> None:
        draining.set()
        await asyncio.Event().wait()

    partitions.before_release(drain)
    partitions.on_loss(lost.set)
    async with in_background(partitions.run()), asyncio.timeout(60):
        await draining.wait()
        assert not lost.is_set()
        client.deleted.update(set(range(PARTITIONS)) - partitions.held)
        partitions._view.wake()
        await lost.wait()


async def test_partitions_are_dropped_if_their_watch_fails() -> None:
    """No replica would work on a draining partition, because no task would wait for its drain any more."""
    client = Client()
    partitions = of_two(client)
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


async def test_the_line_of_gains_waits_for_a_service_that_starts_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """`up` on a busy machine logged two lines: the last service gained more than a second after the first."""
    loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    call_later = loop.call_later

    def call(*given: Any, **named: Any) -> asyncio.TimerHandle:
        timers.append(call_later(*given, **named))
        return timers[-1]

    monkeypatch.setattr(loop, "call_later", call)
    gains = GainLog()
    for service in ("scaler", "planner", "profiler"):
        gains.add(service, range(PARTITIONS))
    assert [each.cancelled() for each in timers] == [True, True, False]
    gains.write()
    assert timers[-1].cancelled()


async def test_partitions_gained_by_several_services_are_one_log_line() -> None:
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
