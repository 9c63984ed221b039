"""Events on every bus: identity, order, and buffering while the server is away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from dynamo_shared.bus import Bus, EventPublisher, streams
from dynamo_shared.bus.protocol import Message, Start
from dynamo_shared.wire import cloudevents
from dynamo_shared.wire.cloudevents import Event
from dynamo_shared.wire.specifications.deployment import deployment_data

from tests.building.memory_bus import MemoryBus
from tests.building.tasks import in_background

GRAPH: dict[str, Any] = {
    "metadata": {"name": "llama-3.1", "namespace": "ns", "uid": "u1", "resourceVersion": "7", "generation": 2},
    "spec": {"backendFramework": "vllm"},
    "status": {
        "state": "successful",
        "conditions": [{"type": "Ready", "status": "True", "reason": "all", "message": "All components serve"}],
        "components": {"Frontend": {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 1}},
    },
}


def graph(name: str = "llama-3.1", version: int = 7) -> dict[str, Any]:
    return {
        **GRAPH,
        "metadata": {**GRAPH["metadata"], "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)},
    }


@asynccontextmanager
async def publishing(bus: Bus, **options: Any) -> AsyncIterator[EventPublisher]:
    publisher = EventPublisher(bus, "c", now=lambda: datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC), **options)
    async with in_background(publisher.run()):
        yield publisher


async def stored(bus: Bus) -> list[tuple[Message, Event]]:
    count = (await bus.stream_state(streams.EVENTS)).messages
    subscription = await bus.subscribe(streams.EVENTS, ["dynamo.evt.v1.>"], start=Start.ALL)
    results: list[tuple[Message, Event]] = []
    async with asyncio.timeout(60):
        while len(results) < count:
            item = await subscription.__anext__()
            if isinstance(item, Message):
                results.append((item, cloudevents.decode(item.payload)))
    await subscription.close()
    return results


async def test_the_wire_format_of_an_event(bus: Bus) -> None:
    async with publishing(bus) as publisher:
        identity = publisher.publish(
            kind="DynamoGraphDeployment", obj=graph(), event="ready", data=deployment_data(graph()), reason="all"
        )
        assert await publisher.flush(10)
    [(message, event)] = await stored(bus)
    assert message.subject == "dynamo.evt.v1.c.ns.dynamographdeployment.llama-3%2E1.ready"
    assert message.headers["content-type"].startswith("application/cloudevents+json")
    assert message.headers["ce-id"] == event.id == identity
    assert message.headers["ce-type"] == event.type == "com.nvidia.dynamo.deployment.ready.v1"
    assert (event.specversion, event.source, event.subject) == (
        "1.0",
        "/clusters/c/namespaces/ns",
        "dynamographdeployment/llama-3.1",
    )
    assert (event.k8suid, event.resourceversion, event.generation) == ("uid-llama-3.1", "7", "2")
    assert event.time == "2026-01-02T03:04:05.678Z"
    assert event.data == {
        "name": "llama-3.1",
        "namespace": "ns",
        "state": "successful",
        "reason": "all",
        "message": "All components serve",
        "generation": "2",
        "backendFramework": "vllm",
        "components": {"Frontend": {"replicas": 2, "ready": 2, "updated": 2, "available": 1}},
    }


async def test_the_same_event_is_stored_once(bus: Bus) -> None:
    async with publishing(bus) as publisher:
        for version in (7, 7, 8):
            publisher.publish(
                kind="DynamoGraphDeployment", obj=graph(version=version), event="ready", data=deployment_data(graph())
            )
            assert await publisher.flush(10)
        for version in (7, 8):
            publisher.publish(
                kind="DynamoGraphDeployment", obj=graph(version=version), event="created", data=deployment_data(graph())
            )
            assert await publisher.flush(10)
    events = [event.type.split(".")[-2] for _, event in await stored(bus)]
    assert events == ["ready", "ready", "created"]


async def test_invalid_events_raise_at_once(bus: Bus) -> None:
    async with publishing(bus) as publisher:
        with pytest.raises(KeyError):
            publisher.publish(kind="DynamoGraphDeployment", obj=graph(), event="exploded", data={})
        with pytest.raises(msgspec.ValidationError):
            publisher.publish(kind="DynamoGraphDeployment", obj=graph(), event="ready", data={"name": 3})
        assert publisher.waiting == 0


async def test_events_are_buffered_in_order_while_the_server_is_away(rig: Any) -> None:
    await rig.bus.declare(streams.EVENTS)
    async with publishing(rig.bus) as publisher:
        await rig.stop()
        await rig.until_degraded()
        for version in range(1, 101):
            for name in ("a", "b"):
                data = deployment_data(graph(name))
                publisher.publish(kind="DynamoGraphDeployment", obj=graph(name, version), event="ready", data=data)
        assert not await publisher.flush(0.2)
        assert publisher.waiting == 200
        await rig.start()
        assert await publisher.flush(20)
    events = [event for _, event in await stored(rig.bus)]
    assert len(events) == 200
    for name in ("a", "b"):
        versions = [int(event.resourceversion) for event in events if event.subject.endswith(f"/{name}")]
        assert versions == list(range(1, 101))


async def test_a_full_outbox_drops_its_oldest_event(rig: Any) -> None:
    await rig.bus.declare(streams.EVENTS)
    async with publishing(rig.bus, capacity=10) as publisher:
        await rig.stop()
        await rig.until_degraded()
        for version in range(1, 31):
            data = deployment_data(graph())
            publisher.publish(kind="DynamoGraphDeployment", obj=graph(version=version), event="ready", data=data)
        assert publisher.waiting == 10
        await rig.start()
        assert await publisher.flush(20)
    assert [int(event.resourceversion) for _, event in await stored(rig.bus)] == list(range(21, 31))


async def test_a_full_outbox_drops_events_of_the_namespace_with_the_most(rig: Any) -> None:
    await rig.bus.declare(streams.EVENTS)
    async with publishing(rig.bus, capacity=10) as publisher:
        await rig.stop()
        await rig.until_degraded()
        for version in range(1, 31):
            for namespace in ("tenant",) if version > 2 else ("quiet", "tenant"):
                obj = graph(version=version)
                obj["metadata"]["namespace"] = namespace
                publisher.publish(kind="DynamoGraphDeployment", obj=obj, event="ready", data=deployment_data(graph()))
        assert publisher.waiting == 10
        await rig.start()
        assert await publisher.flush(20)
    events = [(event.source.rpartition("/")[2], int(event.resourceversion)) for _, event in await stored(rig.bus)]
    assert events[:4] == [("quiet", 1), ("tenant", 23), ("quiet", 2), ("tenant", 24)]
    assert len(events) == 10


async def test_a_namespace_whose_only_event_was_dropped_is_forgotten() -> None:
    bus = MemoryBus()
    await bus.declare(streams.EVENTS)
    publisher = EventPublisher(bus, "c", capacity=1)
    for namespace in ("a", "b", "c"):
        obj = graph()
        obj["metadata"]["namespace"] = namespace
        publisher.publish(kind="DynamoGraphDeployment", obj=obj, event="ready", data=deployment_data(graph()))
    assert (len(publisher._outbox), publisher.waiting) == (1, 1)
    assert await publisher.flush(20)
    assert not publisher._outbox


async def test_a_lost_stream_is_declared_again(rig: Any) -> None:
    await rig.bus.declare(streams.EVENTS)
    async with publishing(rig.bus) as publisher:
        await rig.stop()
        await rig.lose_data()
        await rig.start()
        publisher.publish(kind="DynamoGraphDeployment", obj=graph(), event="ready", data=deployment_data(graph()))
        assert await publisher.flush(20)
    assert len(await stored(rig.bus)) == 1


async def test_flush_sends_even_after_run_has_ended(bus: Bus) -> None:
    async with publishing(bus) as publisher:
        pass
    publisher.publish(kind="DynamoGraphDeployment", obj=graph(), event="ready", data=deployment_data(graph()))
    assert await publisher.flush(10)
    assert len(await stored(bus)) == 1
