"""Workers on the bus: reported once despite restarts, and available to late subscribers."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from dynamo_model_discovery.workers.differences import changes
from dynamo_model_discovery.workers.publication import Clock, Publication
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.bus import streams
from dynamo_shared.bus.errors import BusClosedError
from dynamo_shared.bus.protocol import CaughtUp, Message, Start
from dynamo_shared.state import ObjectCache, StateReader
from dynamo_shared.state.publisher import audit
from dynamo_shared.wire import subjects
from dynamo_shared.wire.discovered import MODELS, WORKERS, ModelCard, model_of, worker_of

from tests.building.memory_bus import MemoryBus
from tests.building.tasks import in_background
from tests.unit.model_discovery.worker_building import keyed, worker

CARD = ModelCard(name="org/m.1", worker_type="aggregated", kv_cache_block_size=16, total_kv_blocks=4)
ONE, TWO = worker("d/c/1", CARD), worker("d/c/2", CARD)


@asynccontextmanager
async def publishing(bus: MemoryBus, now: Callable[[], float] = time.time) -> AsyncIterator[Publication]:
    publication = Publication(bus, "local", now=now)
    async with in_background(publication.state.run()):
        await publication.load()
        yield publication


async def settled(publication: Publication) -> None:
    async with asyncio.timeout(60):
        await publication.mark_complete()


async def publish(publication: Publication, *there) -> list[str]:
    steps = changes(publication.view, keyed(there), publication.stamp)
    await publication.publish(steps)
    await settled(publication)
    return [step.event for step in steps]


async def events(bus: MemoryBus) -> list[str]:
    """Events as a subscriber reads them."""
    subscription = await bus.subscribe(streams.EVENTS, ["dynamo.evt.v1.local.>"], start=Start.ALL)
    results = []
    async for item in subscription:
        if isinstance(item, Message):
            reported = subjects.parse_event(item.subject)
            assert json.loads(item.payload)["data"]["name"] == reported.name
            results.append(f"{reported.kind} {reported.name} {reported.event}")
        elif isinstance(item, CaughtUp):
            break
    await subscription.close()
    return sorted(results)


@asynccontextmanager
async def late_joiner(bus: MemoryBus) -> AsyncIterator[ObjectCache]:
    cache = ObjectCache()
    reader = StateReader(bus, "local", [WORKERS, MODELS], cache)
    async with in_background(reader.run()):
        await asyncio.wait_for(reader.synced(), 60)
        yield cache


async def test_a_late_joiner_reads_all_workers_and_models():
    bus = MemoryBus()
    async with publishing(bus) as publication:
        await publish(publication, ONE, TWO)
        await publish(publication, ONE)
        async with late_joiner(bus) as cache:
            assert [worker_of(obj) for obj in cache.list(WORKERS)] == [ONE]
            assert worker_of(cache.list(WORKERS)[0]).models[0].max_kv_tokens == 64
            (model,) = map(model_of, cache.list(MODELS, "team"))
            assert (model.model, model.available, model.workers) == ("org/m.1", True, {"aggregated": 1})


async def test_a_restart_reports_nothing_and_continues_with_the_known_workers():
    bus = MemoryBus()
    async with publishing(bus) as publication:
        assert await publish(publication, ONE, TWO) == ["joined", "joined", "available"]
        before = publication.view
    reported = await events(bus)
    async with publishing(bus) as publication:
        assert publication.view == before
        assert await publish(publication, ONE, TWO) == []
        assert await events(bus) == reported
        # A change during the restart is reported with the uid that the worker joined with.
        assert await publish(publication, TWO) == ["left", ""]
    assert await events(bus) == sorted([*reported, "worker d/c/1 left"])
    async with publishing(bus) as publication:
        assert await publish(publication) == ["left", "gone"]
        assert await publish(publication, ONE) == ["joined", "available"]
        async with late_joiner(bus) as cache:
            assert [worker_of(obj) for obj in cache.list(WORKERS)] == [ONE]


async def test_an_event_is_published_before_state():
    """A replica that stops in between reports the change twice, instead of never."""
    bus = MemoryBus()
    publication = Publication(bus, "local")
    await bus.declare(*streams.ALL)
    # STATE is not written: its task does not run.
    await publication.publish(changes(publication.view, keyed([ONE]), publication.stamp))
    assert await events(bus) == ["model d/org/m.1 available", "worker d/c/1 joined"]
    async with publishing(bus) as after:
        assert after.view.workers == {}


async def test_a_disconnected_bus_loses_nothing():
    bus = MemoryBus()
    async with publishing(bus) as publication:
        await publish(publication, ONE)
        bus.disconnect()
        publishing_task = asyncio.create_task(publish(publication, TWO))
        await asyncio.sleep(0.05)
        assert not publishing_task.done()
        bus.reconnect()
        async with asyncio.timeout(60):
            assert await publishing_task == ["left", "joined"]
        assert "worker d/c/2 joined" in await events(bus)


async def test_a_lost_stream_is_filled_again_without_events():
    bus = MemoryBus()
    async with publishing(bus) as publication:
        await publish(publication, ONE, TWO)
        bus.lose_data()
        await publication.state._audit.check()
        assert publication.state.lost.is_set()
        await publication.start_over()
        await settled(publication)
        assert await events(bus) == []
        async with late_joiner(bus) as cache:
            assert {worker_of(obj).name for obj in cache.list(WORKERS)} == {"d/c/1", "d/c/2"}


async def test_deleted_workers_stay_deleted_after_the_stream_was_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """If more messages returned than are corrected one by one, each check took STATE for lost, and deleted nothing."""
    monkeypatch.setattr(audit, "MOST_SUSPECTS", 1)
    bus = MemoryBus()
    async with publishing(bus) as publication:
        await publish(publication, ONE, TWO)
        locations = [subjects.state_subject("local", WORKERS.id, ObjectKey("team", each.name)) for each in (ONE, TWO)]
        before = [await bus.last_message(streams.STATE, location) for location in locations]
        await publish(publication)
        for message in before:
            assert message is not None
            await bus.publish(message.subject, message.payload, headers=message.headers)
        await publication.state._audit.scan()
        assert publication.state.lost.is_set()
        await publication.start_over()
        await settled(publication)
        async with late_joiner(bus) as cache:
            assert cache.list(WORKERS) == []
        await publication.state._audit.scan()
        assert not publication.state.lost.is_set()


async def test_an_unreadable_message_in_state_blocks_nothing():
    bus = MemoryBus()
    await bus.declare(*streams.ALL)
    await bus.publish("dynamo.state.v1.local.workers%2Ediscovery%2Edynamo.team.foreign", b"{")
    async with publishing(bus) as publication:
        assert publication.view.workers == {}
        assert await publish(publication, ONE) == ["joined", "available"]


async def test_versions_stay_above_those_of_state_after_the_clock_was_set_back():
    bus = MemoryBus()
    async with publishing(bus) as publication:
        await publish(publication, ONE)
    async with publishing(bus, now=lambda: 0.0) as publication:
        await publish(publication, worker("d/c/1", CARD, pod="p"))
        async with late_joiner(bus) as cache:
            assert [worker_of(obj).pod for obj in cache.list(WORKERS)] == ["p"]


@pytest.mark.parametrize("moment", [1000.0, 0.0])
def test_versions_rise_with_time_and_never_decrease(moment):
    clock = Clock(lambda: moment)
    clock.observed(500_000)
    versions = [clock.version() for _ in range(3)]
    assert versions == sorted(set(versions))
    assert versions[0] > 500_000


async def test_a_closed_bus_ends_the_publisher() -> None:
    """It retried without a pause, which blocked the whole process."""
    bus = MemoryBus()
    publication = Publication(bus, "local")
    await bus.close()
    with pytest.raises(BusClosedError):
        await publication.publish(changes(publication.view, keyed((ONE,)), publication.stamp))
