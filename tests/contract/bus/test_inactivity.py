"""The server removes consumers of disconnected readers soon, and streams have room for many consumers.

Since 2.15 NATS limits a stream to 1,000 consumers by default; before, each unused one took memory.
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


async def test_consumers_expire_soon_if_their_reader_can_resume_and_later_if_it_would_reread_everything(
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


async def test_a_reader_that_pauses_longer_resumes_without_gap_or_duplicate(
    bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(management, "INACTIVE_WHERE_RESUMED", 2.0)
    # More than one pull request covers: until these are consumed, no other request is pending.
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
                    # On a busy machine the next consumer must not expire: exactly one restart is expected.
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
async def test_an_existing_stream_gets_a_higher_consumer_limit_if_the_server_has_limits(
    bus: NatsBus, version: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older servers do not count consumers, and refuse to change the limit."""
    session = bus._keeper.session()
    await session.js.delete_stream(EVENTS.name)
    await session.js.add_stream(replace(management.stream_config(EVENTS, 1), max_consumers=-1))
    monkeypatch.setattr(Client, "connected_server_version", ServerVersion(version))
    await management.declare(session, EVENTS, 1)
    assert (await session.js.stream_info(EVENTS.name)).config.max_consumers == expected


async def test_a_new_stream_has_a_high_consumer_limit(bus: NatsBus) -> None:
    assert (await bus._keeper.session().js.stream_info(EVENTS.name)).config.max_consumers == 10_000


class FewConsumers(NatsServer):
    """A server with several accounts: the platform's may have 50 consumers a stream."""

    def _configuration(self) -> dict[str, Any]:
        account = {"jetstream": {"max_consumers": 50}, "users": [{"user": "dynamo", "password": "hush"}]}
        return {**super()._configuration(), "accounts": {"PLATFORM": account}}


@pytest.mark.parametrize("there", [False, True])
async def test_streams_are_created_in_an_account_with_a_lower_consumer_limit(there: bool, tmp_path: Path) -> None:
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
