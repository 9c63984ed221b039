"""A reader requests a bounded number of messages and bytes at a time, and loses none."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from dynamo_devcluster import NatsServer, NatsServerOptions, Programs
from dynamo_shared.bus.nats import NatsBus, pull
from dynamo_shared.bus.nats.pull import WINDOW
from dynamo_shared.bus.protocol import CaughtUp, Message, Start
from dynamo_shared.bus.sizes import MAX_PAYLOAD
from dynamo_shared.bus.streams import STATE

from tests.building.waiting import until

MIB = 1 << 20
PODS = "dynamo.state.v1.c.pods.>"


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[NatsBus]:
    options = NatsServerOptions(max_payload=MAX_PAYLOAD)
    async with NatsServer(await Programs().obtain("nats-server"), tmp_path, options) as server:
        bus = await NatsBus.connect(servers=(server.url,), name="pulling")
        await bus.declare(STATE)
        yield bus
        await bus.close()


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes that a reader buffered, after each message that arrived."""
    held: list[int] = []
    received = pull.Puller._on_message

    def counted(self: pull.Puller, message) -> None:
        received(self, message)
        held.append(sum(len(each.data) for each in self._ready))

    monkeypatch.setattr(pull.Puller, "_on_message", counted)
    return held


def subject(number: int) -> str:
    return f"dynamo.state.v1.c.pods.ns.{number:04}"


async def read(bus: NatsBus, begin: asyncio.Event | None = None) -> list[tuple[str, int]]:
    """Subjects and sizes in order of arrival; with `begin`, the reader waits for it after the first message."""
    results: list[tuple[str, int]] = []
    subscription = await bus.subscribe(STATE, [PODS], start=Start.LAST_PER_SUBJECT)
    async with asyncio.timeout(60):
        async for item in subscription:
            if isinstance(item, CaughtUp):
                break
            assert isinstance(item, Message)
            results.append((item.subject, len(item.payload)))
            if begin is not None:
                await begin.wait()
    await subscription.close()
    return results


@pytest.mark.parametrize(
    "sizes",
    [[MIB] * 40, [MAX_PAYLOAD - 4096] * 6, [100, MAX_PAYLOAD - 4096] * 6, [100] * 2000, [64 << 10] * 300],
    ids=["large", "largest", "mixed", "many", "middle"],
)
async def test_messages_arrive_in_order_and_the_buffer_stays_within_the_window(
    bus: NatsBus, most: list[int], sizes: list[int]
) -> None:
    for number, size in enumerate(sizes):
        await bus.publish(subject(number), b"x" * size)
    assert await read(bus) == [(subject(number), size) for number, size in enumerate(sizes)]
    # The second term is for the largest message that the server accepts.
    assert max(most) <= max(WINDOW, 2 * (MAX_PAYLOAD + (64 << 10)))


async def test_a_slow_reader_gets_no_more_than_the_window_until_it_goes_on(bus: NatsBus, most: list[int]) -> None:
    for number in range(40):
        await bus.publish(subject(number), b"x" * MIB)
    begin = asyncio.Event()
    reading = asyncio.create_task(read(bus, begin))
    await until(lambda: len(most) >= 7, within=30)
    begin.set()
    assert len(await reading) == 40
    assert max(most) <= max(WINDOW, 2 * (MAX_PAYLOAD + (64 << 10)))
