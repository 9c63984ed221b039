"""Consumers of readers that have gone are forgotten soon, and there is room for those of all others.

Since 2.15 NATS refuses more than 1,000 consumers of a stream; before, each of them took memory.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dynamo_devcluster import NatsServer, Programs
from dynamo_shared.bus.nats import NatsBus, management
from dynamo_shared.bus.protocol import CaughtUp, Message, Start, SubscriptionRestarted
from dynamo_shared.bus.streams import EVENTS, STATE, StreamSpec
from nats.aio.client import Client, ServerVersion


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[NatsBus]:
    async with NatsServer(await Programs().obtain("nats-server"), tmp_path) as server:
        bus = await NatsBus.connect(servers=(server.url,), name="inactive")
        await bus.declare(STATE, EVENTS)
        yield bus
        await bus.close()


async def thresholds(bus: NatsBus, stream: StreamSpec) -> list[float | None]:
    infos = await bus._keeper.session().js.consumers_info(stream.name)
    return [each.config.inactive_threshold for each in infos]


async def test_readers_that_can_go_on_are_forgotten_soon_and_those_that_would_read_all_again_are_not(
    bus: NatsBus,
) -> None:
    events = await bus.subscribe(EVENTS, ["dynamo.evt.v1.c.>"], start=Start.ALL)
    state = await bus.subscribe(STATE, ["dynamo.state.v1.c.>"], start=Start.LAST_PER_SUBJECT)
    for each in (events, state):
        assert isinstance(await anext(each), CaughtUp)
    assert await thresholds(bus, EVENTS) == [10.0]
    assert await thresholds(bus, STATE) == [300.0]
    await events.close()
    await state.close()


async def test_a_reader_that_rests_for_longer_goes_on_without_gap_or_double(
    bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(management, "INACTIVE_WHERE_RESUMED", 2.0)
    # More than one request asks for: while they are not taken no other one is under way.
    count = 1200
    for number in range(count):
        await bus.publish(f"dynamo.evt.v1.c.ns.graph.g.e{number}", b"x")
    read: list[str] = []
    restarts: list[bool] = []
    async with asyncio.timeout(60):
        subscription = await bus.subscribe(EVENTS, ["dynamo.evt.v1.c.>"], start=Start.ALL)
        async for item in subscription:
            if isinstance(item, Message):
                read.append(item.subject.rpartition(".")[2])
                if len(read) == 1:
                    await _none_left(bus)
                    # The next one is not forgotten where the machine is busy: one restart is expected.
                    monkeypatch.setattr(management, "INACTIVE_WHERE_RESUMED", 60.0)
            elif isinstance(item, SubscriptionRestarted):
                restarts.append(item.complete)
            elif len(read) == count:
                break
        await subscription.close()
    assert read == [f"e{number}" for number in range(count)]
    assert restarts == [True]


async def _none_left(bus: NatsBus) -> None:
    while await thresholds(bus, EVENTS):
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("version", "expected"), [("2.15.1", 10_000), ("2.16.0-RC.1", 10_000), ("2.12.1", -1), ("", -1)]
)
async def test_a_stream_of_before_gets_room_for_readers_where_the_server_counts_them(
    bus: NatsBus, version: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older ones do not, and refuse to change the number."""
    session = bus._keeper.session()
    await session.js.delete_stream(EVENTS.name)
    await session.js.add_stream(replace(management.stream_config(EVENTS, 1), max_consumers=-1))
    monkeypatch.setattr(Client, "connected_server_version", ServerVersion(version))
    await management.declare(session, EVENTS, 1)
    assert (await session.js.stream_info(EVENTS.name)).config.max_consumers == expected


async def test_a_new_stream_has_room_for_readers(bus: NatsBus) -> None:
    assert (await bus._keeper.session().js.stream_info(EVENTS.name)).config.max_consumers == 10_000


class FewConsumers(NatsServer):
    """A server of several accounts: that of the platform may have 50 consumers of a stream."""

    def _configuration(self) -> dict[str, Any]:
        account = {"jetstream": {"max_consumers": 50}, "users": [{"user": "dynamo", "password": "hush"}]}
        return {**super()._configuration(), "accounts": {"PLATFORM": account}}


@pytest.mark.parametrize("there", [False, True])
async def test_an_account_that_may_have_fewer_has_its_streams_all_the_same(there: bool, tmp_path: Path) -> None:
    async with FewConsumers(await Programs().obtain("nats-server"), tmp_path) as server:
        bus = await NatsBus.connect(servers=(server.url,), user="dynamo", password="hush")
        session = bus._keeper.session()
        if there:
            before = replace(management.stream_config(EVENTS, 1), max_consumers=-1, description="of before")
            await session.js.add_stream(before)
        await bus.declare(EVENTS)
        config = (await session.js.stream_info(EVENTS.name)).config
        assert (config.max_consumers, config.description) == (-1, EVENTS.description)
        await bus.close()
