"""Hub: what it knows of the stream that it reads."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_dynadmin.state import entries
from dynamo_dynadmin.state.hub import Hub, Resync
from dynamo_shared.api.resources import DYNAMO_MODELS, ObjectKey
from dynamo_shared.bus import streams
from dynamo_shared.bus.errors import BusError
from dynamo_shared.bus.protocol import CaughtUp, Item, Message, StreamState, SubscriptionRestarted
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.state import messages
from dynamo_shared.state.versions import Version
from dynamo_shared.wire import subjects

from tests.building.memory_bus import MemoryBus
from tests.building.waiting import until


class Hesitant(MemoryBus):
    """Answers questions about its streams unless it is silent."""

    silent = False

    async def stream_state(self, stream: StreamSpec) -> StreamState:
        if self.silent:
            raise BusError("no answer")
        return await super().stream_state(stream)


async def store(bus: MemoryBus, *names: str) -> None:
    for name in names:
        metadata = {"namespace": "n", "name": name, "uid": name, "resourceVersion": "7"}
        obj = {**DYNAMO_MODELS.type_meta, "metadata": metadata}
        await bus.publish(
            subjects.state_subject("c", DYNAMO_MODELS.id, ObjectKey("n", name)),
            messages.encode_object(obj),
            headers=messages.object_headers(obj, messages.ChangeType.ADDED),
        )
    marker = messages.SyncedMarker(resource=DYNAMO_MODELS.id, resource_version="7", count=len(names), time="")
    await bus.publish(subjects.synced_subject("c", DYNAMO_MODELS.id), messages.encode_marker(marker))


async def test_positions_of_a_lost_stream_are_not_known_though_nats_does_not_say_which_one_it_has_now() -> None:
    bus = Hesitant()
    await bus.declare(streams.STATE)
    await store(bus, "a", "b", "c")
    hub = Hub(bus, "c", [DYNAMO_MODELS])
    reading = asyncio.create_task(hub.run())
    await hub.ready.wait()
    before = hub.position()
    bus.disconnect()
    bus.lose_data()
    bus.silent = True
    bus.reconnect()
    await bus.declare(streams.STATE)
    with hub.reading(DYNAMO_MODELS, "n") as reader:
        await store(bus, "d")
        await until(lambda: hub.entries(DYNAMO_MODELS).get(ObjectKey("n", "d")) is not None, within=60)
        await until(lambda: hub.entries(DYNAMO_MODELS).get(ObjectKey("n", "a")) is None, within=60)
        assert reader.lost
    with pytest.raises(Resync):
        hub.resume(DYNAMO_MODELS, "n", before)
    assert all(each.deleted for each in hub.resume(DYNAMO_MODELS, "n", hub.position()))
    reading.cancel()


@pytest.mark.parametrize("remembered", [1, 0])
async def test_deletions_of_a_lost_stream_are_not_reported_with_its_numbers(remembered, monkeypatch) -> None:
    monkeypatch.setattr(entries, "DELETIONS", remembered)
    bus = Hesitant()
    await bus.declare(streams.STATE)
    await store(bus, "a", "b", "c", "d")
    subject = subjects.state_subject("c", DYNAMO_MODELS.id, ObjectKey("n", "a"))
    await bus.publish(subject, b"", headers=messages.tombstone_headers(Version("a", 9, "")))
    hub = Hub(bus, "c", [DYNAMO_MODELS])
    reading = asyncio.create_task(hub.run())
    await hub.ready.wait()
    bus.disconnect()
    bus.lose_data()
    bus.reconnect()
    await bus.declare(streams.STATE)
    await store(bus, "b", "c", "d")
    await until(lambda: hub.position().sequence == 4, within=60)
    # An id with such a number is not of this stream.
    assert hub.resume(DYNAMO_MODELS, "n", hub.position()) == []
    reading.cancel()


async def test_a_stream_that_is_lost_while_it_is_read_first_leaves_no_position() -> None:
    """Numbers of the new one begin at one: a reader that goes on after an old one would miss all changes up to it."""
    subject = subjects.state_subject("c", DYNAMO_MODELS.id, ObjectKey("n", "a"))
    tombstone = Message(subject, b"", messages.tombstone_headers(Version("a", 9, "")), 50)
    marker = messages.SyncedMarker(resource=DYNAMO_MODELS.id, resource_version="7", count=0, time="")
    synced = Message(subjects.synced_subject("c", DYNAMO_MODELS.id), messages.encode_marker(marker), {}, 1)

    async def items() -> AsyncIterator[Item]:
        for item in (tombstone, SubscriptionRestarted(complete=False, incarnation="new"), synced, CaughtUp("new")):
            yield item

    class Read:
        def __aiter__(self) -> AsyncIterator[Item]:
            return items()

        async def close(self) -> None:
            """There is nothing to close."""

    class Lost(MemoryBus):
        async def subscribe(self, *_: object, **__: object) -> Any:
            return Read()

    hub = Hub(Lost(), "c", [DYNAMO_MODELS])
    await hub.run()
    assert hub.position().sequence == 1
    assert hub.resume(DYNAMO_MODELS, "n", hub.position()) == []
