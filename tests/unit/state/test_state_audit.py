"""When the publisher of STATE considers the stream lost, and when it does not."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DEPLOYMENTS, ObjectKey, Resource
from dynamo_shared.bus import streams
from dynamo_shared.bus.errors import BusError, BusUnavailableError
from dynamo_shared.bus.protocol import Message, StreamState
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.state import messages
from dynamo_shared.state.publisher import StatePublisher, audit
from dynamo_shared.wire import subjects

from tests.building.clock import ManualClock
from tests.building.memory_bus import MemoryBus
from tests.building.memory_bus.bus import MemorySubscription
from tests.building.tasks import in_background


def named(name: str, version: int = 5) -> KubeObject:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}


@asynccontextmanager
async def publishing(bus: MemoryBus, *names: str, **options: Any) -> AsyncIterator[StatePublisher]:
    """A publisher of some objects that STATE has."""
    publisher = StatePublisher(bus, "c", **options)
    async with in_background(publisher.run()):
        await publisher.load([DEPLOYMENTS])
        await put(publisher, *map(named, names))
        yield publisher
    await bus.close()


async def put(publisher: StatePublisher, *objects: KubeObject) -> None:
    for each in objects:
        publisher.put(DEPLOYMENTS, each)
    async with asyncio.timeout(60):
        await publisher.flushed(DEPLOYMENTS)


class NewLeader(MemoryBus):
    """A stream with a newly elected leader, whose first answers lack messages that it has not applied yet."""

    lacking = 0

    async def stream_state(self, spec: StreamSpec) -> StreamState:
        whole = await super().stream_state(spec)
        if not self.lacking:
            return whole
        self.lacking -= 1
        return whole._replace(messages=0, last_sequence=0)


@pytest.mark.parametrize(("answers", "lost"), [(2, False), (10, True)])
async def test_a_new_leader_gets_time_to_apply_acknowledged_messages(
    answers: int, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "APPLIED_WITHIN", 0.0)
    bus = NewLeader()
    async with publishing(bus, "a") as publisher:
        # One request reads the stream's incarnation, one its content.
        bus.lacking = answers
        await publisher._audit.check()
        assert publisher.lost.is_set() is lost


SUBJECT = subjects.state_subject("c", DEPLOYMENTS.id, ObjectKey("ns", "a"))


class Failing(MemoryBus):
    """Answers some requests with an error, the first one first."""

    def __init__(self) -> None:
        super().__init__()
        self.reading: list[BusError] = []
        self.subscribing: list[BusError] = []

    async def last_message(self, stream: StreamSpec, subject: str) -> Message | None:
        if self.reading:
            raise self.reading.pop(0)
        return await super().last_message(stream, subject)

    async def subscribe(self, stream: StreamSpec, filters: Sequence[str], **options: Any) -> MemorySubscription:
        if self.subscribing:
            raise self.subscribing.pop(0)
        return await super().subscribe(stream, filters, **options)

    async def is_right(self) -> bool:
        last = await super().last_message(streams.STATE, SUBJECT)
        return last is not None and last.payload != b"{}"


async def _truth(_resource: Resource, _key: ObjectKey) -> KubeObject | None:
    return named("a")


@asynccontextmanager
async def foreign(bus: Failing, **options: Any) -> AsyncIterator[StatePublisher]:
    """A publisher whose object another publisher has overwritten."""
    async with publishing(bus, "a", truth=_truth, **options) as publisher:
        await bus.publish(SUBJECT, b"{}")
        yield publisher
        async with asyncio.timeout(60):
            while not await bus.is_right():
                await asyncio.sleep(0.01)


async def test_an_interrupted_check_is_repeated_soon() -> None:
    bus = Failing()
    async with foreign(bus) as publisher:
        bus.reading = [BusUnavailableError("no answer")]
        with pytest.raises(BusUnavailableError):
            await publisher._audit.scan()
        assert not await bus.is_right()
        await publisher._audit.check()


async def test_checks_continue_after_the_server_rejected_one() -> None:
    bus = Failing()
    async with foreign(bus, audit_interval=0.01):
        bus.subscribing = [BusError("maximum consumers limit reached")]
        bus.disconnect()
        bus.reconnect()


class Busy(MemoryBus):
    """Something happens while it answers a request about the stream, or before the content is read."""

    answering: Callable[[], Awaitable[None]] | None = None
    reading: Callable[[], Awaitable[None]] | None = None

    async def stream_state(self, stream: StreamSpec) -> StreamState:
        observed = await super().stream_state(stream)
        if self.answering is not None:
            await self.answering()
        return observed

    async def subscribe(self, stream: StreamSpec, filters: Sequence[str], **options: Any) -> MemorySubscription:
        subscription = await super().subscribe(stream, filters, **options)
        if self.reading is not None:
            await self.reading()
        return subscription


async def test_messages_acknowledged_while_the_server_answers_do_not_count_as_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit, "APPLIED_WITHIN", 0.0)
    bus, numbers = Busy(), itertools.count()
    async with publishing(bus, "a") as publisher:
        bus.answering = lambda: put(publisher, named(f"new-{next(numbers)}"))
        await publisher._audit.check()
        assert not publisher.lost.is_set()


async def test_objects_that_change_while_all_sequences_are_read_do_not_count_as_lost() -> None:
    bus = Busy()
    names = [f"n-{number}" for number in range(audit.MOST_SUSPECTS + 1)]
    async with publishing(bus, *names) as publisher:
        bus.reading = lambda: put(publisher, *(named(name, 6) for name in names))
        await publisher._audit.scan()
        assert not publisher.lost.is_set()


async def test_messages_about_no_object_are_deleted_however_many_there_are() -> None:
    """Each check considered them a loss, but the read after a loss does not touch them."""
    bus, number = MemoryBus(), 2 * audit.MOST_SUSPECTS
    async with publishing(bus, "a") as publisher:
        for each in range(number):
            await bus.publish(f"{SUBJECT}.no-object-{each}", b"{}")
        await publisher._audit.scan()
        await publisher._audit.check()
        assert not publisher.lost.is_set()
        left = [await bus.last_message(streams.STATE, f"{SUBJECT}.no-object-{each}") for each in range(number)]
        assert {messages.is_tombstone(each.headers) for each in left if each is not None} == {True}


async def test_messages_not_read_again_yet_after_a_loss_are_not_another_loss() -> None:
    """A reconnection in between compares all sequences at once."""
    bus = Busy()
    async with publishing(bus, *(f"n-{number}" for number in range(audit.MOST_SUSPECTS + 1))) as publisher:

        async def compared() -> None:
            bus.reading = None
            await publisher._audit.scan()

        publisher.start_over()
        bus.reading = compared
        await publisher.load([DEPLOYMENTS])
        assert not publisher.lost.is_set()
        await publisher._audit.check()
        assert not publisher.lost.is_set()


@pytest.mark.parametrize("passed", [audit.FOREIGN_INTERVAL, -3600.0], ids=["a minute later", "set back"])
async def test_messages_of_others_during_a_check_are_detected_later(passed: float) -> None:
    """Also with a clock that was set back: STATE was not checked until that clock had caught up."""
    bus, clock = MemoryBus(), ManualClock()
    first, second = (subjects.state_subject("c", DEPLOYMENTS.id, ObjectKey("ns", name)) for name in "ab")

    async def truth(_: Resource, key: ObjectKey) -> KubeObject | None:
        if key.name == "a":
            # All sequences have been read by now.
            await bus.publish(second, b"{}")
        return named(key.name)

    async with publishing(bus, "a", "b", truth=truth, clock=clock) as publisher:
        await bus.publish(first, b"{}")
        await publisher._audit.scan()
        await put(publisher)
        clock.now += passed
        await publisher._audit.check()
        await put(publisher)
        last = await bus.last_message(streams.STATE, second)
        assert last is not None
        assert last.payload != b"{}"
