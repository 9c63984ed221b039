"""Objects that STATE rejects are reported as long as that lasts, and no longer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from os import urandom
from typing import Any

import pytest
from dynamo_shared.api.resources import DEPLOYMENTS, key_of
from dynamo_shared.bus import streams
from dynamo_shared.bus.errors import BusError, BusUnavailableError, StreamFullError
from dynamo_shared.bus.protocol import ACK_TIMEOUT, Ack, OutgoingMessage
from dynamo_shared.bus.sizes import check_size
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.state import messages
from dynamo_shared.state.publisher import StatePublisher, refusals
from dynamo_shared.state.versions import version_of
from dynamo_shared.wire import subjects
from structlog.testing import capture_logs

from tests.building.memory_bus import MemoryBus
from tests.building.tasks import in_background
from tests.building.waiting import until


def deployment(version: int, noise: int) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "ns", "uid": "uid-a", "resourceVersion": str(version)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"noise": "x" * noise}}


SMALL, LARGE = deployment(5, 1), deployment(6, 10_000)
KEY = key_of(SMALL)
SUBJECT = subjects.state_subject("c", DEPLOYMENTS.id, KEY)


class Limited(MemoryBus):
    """A server with a small message limit, until it is reconfigured and restarted."""

    largest = 4096

    async def send(self, message: OutgoingMessage, *, timeout: float = ACK_TIMEOUT) -> asyncio.Future[Ack]:
        check_size(message.subject, message.payload, message.headers, self.largest)
        return await super().send(message, timeout=timeout)

    async def version(self) -> str | None:
        last = await self.last_message(streams.STATE, SUBJECT)
        return last.headers["resourceVersion"] if last is not None else None


class Full(MemoryBus):
    """A server whose storage is full until there is room again."""

    full = True
    refusal: BusError = StreamFullError("insufficient storage")

    async def send(self, message: OutgoingMessage, *, timeout: float = ACK_TIMEOUT) -> asyncio.Future[Ack]:
        if not self.full:
            return await super().send(message, timeout=timeout)
        refused: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        refused.set_exception(self.refusal)
        return refused


@asynccontextmanager
async def publishing(bus: MemoryBus) -> AsyncIterator[tuple[StatePublisher, list[str]]]:
    """A publisher, and its reports about rejected objects; the last report counts."""
    publisher, said = StatePublisher(bus, "c"), [""]
    publisher.on_refused(said.append)
    await publisher.load([DEPLOYMENTS])
    async with in_background(publisher.run()):
        yield publisher, said
    await bus.close()


async def test_a_deleted_object_no_longer_counts_as_rejected() -> None:
    """STATE never had it, so there is no deletion to publish."""
    async with publishing(Limited()) as (publisher, said):
        publisher.put(DEPLOYMENTS, LARGE)
        await until(lambda: "1 objects" in said[-1])
        publisher.delete(DEPLOYMENTS, KEY, version_of(LARGE))
        assert said[-1] == ""


async def test_a_rejected_object_no_longer_counts_if_state_has_its_present_version() -> None:
    """The data store was restored."""
    async with publishing(Limited()) as (publisher, said):
        publisher.put(DEPLOYMENTS, SMALL)
        await publisher.flushed(DEPLOYMENTS)
        publisher.put(DEPLOYMENTS, LARGE)
        await until(lambda: "1 objects" in said[-1])
        assert not publisher.put(DEPLOYMENTS, SMALL)
        assert said[-1] == ""


async def test_a_rejected_object_is_published_when_the_server_accepts_more() -> None:
    bus = Limited()
    async with publishing(bus) as (publisher, said):
        publisher.put(DEPLOYMENTS, SMALL)
        publisher.put(DEPLOYMENTS, LARGE)
        await until(lambda: "1 objects" in said[-1])
        bus.disconnect()
        bus.largest = 1 << 20
        bus.reconnect()
        await until(lambda: said[-1] == "")
        assert await bus.version() == "6"


async def test_a_limited_number_of_rejected_objects_is_kept_and_the_rest_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server with a small max_payload rejects most objects of a cluster, and all of them were in memory."""
    monkeypatch.setattr(refusals, "KEPT_BYTES", 10_000, raising=False)
    bus = Limited()
    async with publishing(bus) as (publisher, said):
        publisher.put(DEPLOYMENTS, {**LARGE, "spec": {"noise": urandom(20_000).hex()}})
        await until(lambda: "1 objects" in said[-1])
        bus.disconnect()
        bus.largest = 1 << 20
        bus.reconnect()
        async with asyncio.timeout(10):
            await publisher.lost.wait()


async def test_rejections_from_before_a_loss_no_longer_count() -> None:
    bus = Limited()
    async with publishing(bus) as (publisher, said):
        publisher.put(DEPLOYMENTS, LARGE)
        await until(lambda: "1 objects" in said[-1])
        publisher.start_over()
        assert said[-1] == ""


@asynccontextmanager
async def stalled(bus: Full) -> AsyncIterator[tuple[StatePublisher, list[str]]]:
    """A publisher whose object such a server rejects, and its reports so far."""
    async with publishing(bus) as (publisher, _):
        said: list[str] = []
        publisher.on_stalled(said.append)
        publisher.put(DEPLOYMENTS, SMALL)
        await until(lambda: bool(said))
        yield publisher, said


async def test_a_full_server_is_reported_until_it_accepts_messages_again() -> None:
    """The connection is good, but no service receives changes any more."""
    bus = Full()
    with capture_logs() as lines:
        async with stalled(bus) as (publisher, said):
            assert said == ["cannot publish objects, 1 are waiting: insufficient storage"]
            bus.full = False
            await publisher.flushed(DEPLOYMENTS)
            assert said[1:] == [""]
    logged = [line["event"] for line in lines if line["log_level"] != "debug"]
    assert logged == ["STATE accepts no objects", "STATE accepts objects again"]


async def test_a_server_that_acknowledges_nothing_is_reported_with_what_to_do() -> None:
    """NATS stores nothing and answers nothing after its disk was full, until it is restarted."""
    bus = Full()
    bus.refusal = BusUnavailableError("NATS did not acknowledge in time")
    async with stalled(bus) as (_, said):
        assert said[0].endswith("in time; if this lasts, see the log of NATS: after a full disk it must be restarted")


async def test_a_server_that_has_the_pending_message_is_no_longer_reported() -> None:
    """Another watcher published it, or the acknowledgement was lost: nothing is left to publish."""
    bus = Full()
    async with stalled(bus) as (publisher, said):
        headers = messages.object_headers(SMALL, messages.ChangeType.ADDED)
        await MemoryBus.send(bus, OutgoingMessage(SUBJECT, messages.encode_object(SMALL), headers=headers))
        bus.full = False
        await publisher.flushed(DEPLOYMENTS)
        assert said[1:] == [""]


class Small(MemoryBus):
    """A server without space for the streams until there is room."""

    full = True

    async def declare(self, *streams: StreamSpec) -> None:
        if self.full:
            raise StreamFullError("NATS has no space for stream DYNAMO_EVENTS")
        await super().declare(*streams)


async def test_a_server_without_space_for_the_streams_is_reported_until_they_exist() -> None:
    """Everything waited for the first list, and nothing said why."""
    bus, said = Small(), list[str]()
    publisher = StatePublisher(bus, "c")
    publisher.on_stalled(said.append)
    async with in_background(publisher.load([DEPLOYMENTS])) as loading:
        await until(lambda: bool(said))
        assert said == ["NATS has no space for stream DYNAMO_EVENTS"]
        bus.full = False
        await loading
    assert said[1:] == [""]
    await bus.close()
