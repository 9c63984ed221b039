"""STATE from end to end, on every bus: fenced publishing, reading, and what both do when the server goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from dynamo_shared.api.resources import DEPLOYMENTS, SERVICES, ObjectKey, Resource, key_of
from dynamo_shared.bus import Bus, ObjectCache, StateReader, streams, subjects
from dynamo_shared.bus.state_publisher import StatePublisher
from dynamo_shared.bus.versions import version_of
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

CLUSTER = "c"
KEY = ObjectKey("ns", "a")


def obj(name: str, version: int, *, uid: str = "", created: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "generation": 3,
        "creationTimestamp": created,
        "managedFields": [{"manager": "kubectl"}],
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": version}}


@asynccontextmanager
async def publishing(bus: Bus, *resources: Resource) -> AsyncIterator[StatePublisher]:
    publisher = StatePublisher(bus, CLUSTER)
    task = asyncio.create_task(publisher.run())
    await publisher.load(resources or (DEPLOYMENTS,))
    try:
        yield publisher
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def reading(bus: Bus, *resources: Resource) -> AsyncIterator[tuple[ObjectCache, StateReader]]:
    cache = ObjectCache()
    reader = StateReader(bus, CLUSTER, resources or (DEPLOYMENTS,), cache)
    task = asyncio.create_task(reader.run())
    try:
        yield cache, reader
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], object], within: float = 20.0) -> None:
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.01)


def version(cache: ObjectCache, name: str = "a") -> str | None:
    found = cache.get(DEPLOYMENTS, ObjectKey("ns", name))
    return found["metadata"]["resourceVersion"] if found else None


def names(cache: ObjectCache) -> list[str]:
    return sorted(key.name for key in cache.keys(DEPLOYMENTS))


async def test_what_is_put_is_read(bus: Bus) -> None:
    async with publishing(bus) as publisher, reading(bus) as (cache, reader):
        assert publisher.put(DEPLOYMENTS, obj("a", 5))
        assert not publisher.put(DEPLOYMENTS, obj("a", 5))
        await publisher.flushed(DEPLOYMENTS)
        await until(lambda: version(cache) == "5")
        assert not reader.is_synced(DEPLOYMENTS)
        await publisher.mark_synced(DEPLOYMENTS, "5")
        await asyncio.wait_for(reader.synced(), 10)
        found = cache.get(DEPLOYMENTS, KEY)
        assert found is not None
        assert "managedFields" not in found["metadata"]
        publisher.delete(DEPLOYMENTS, KEY, version_of(obj("a", 6)))
        await until(lambda: version(cache) is None)


async def test_a_reader_knows_what_the_cluster_has_not_and_hears_when_it_has(bus: Bus) -> None:
    async with publishing(bus) as publisher, reading(bus) as (_, reader):
        heard: list[bool] = []
        reader.on_resync(lambda resource: heard.append(reader.is_served(resource)))
        await publisher.mark_synced(DEPLOYMENTS, "", served=False)
        await asyncio.wait_for(reader.synced(), 10)
        assert not reader.is_served(DEPLOYMENTS)
        await publisher.mark_synced(DEPLOYMENTS, "5")
        await until(lambda: reader.is_served(DEPLOYMENTS))
        assert heard == [False, True]


async def test_headers_say_what_a_reader_needs(bus: Bus) -> None:
    async with publishing(bus) as publisher:
        publisher.put(DEPLOYMENTS, obj("a", 5))
        await publisher.flushed(DEPLOYMENTS)
        subject = subjects.state_subject(CLUSTER, DEPLOYMENTS.id, KEY)
        message = await bus.last_message(streams.STATE, subject)
        assert message is not None
        expected = {"uid": "uid-a", "resourceVersion": "5", "generation": "3", "change": "modified"}
        assert expected.items() <= dict(message.headers).items()
        publisher.delete(DEPLOYMENTS, KEY, version_of(obj("a", 6)))
        await publisher.flushed(DEPLOYMENTS)
        message = await bus.last_message(streams.STATE, subject)
        assert message is not None
        assert (message.payload, message.headers["change"], message.headers["resourceVersion"]) == (b"", "deleted", "6")


async def test_a_burst_of_changes_ends_with_the_newest(bus: Bus) -> None:
    async with publishing(bus) as publisher, reading(bus) as (cache, _):
        for number in range(1, 200):
            publisher.put(DEPLOYMENTS, obj("a", number))
        await publisher.flushed(DEPLOYMENTS)
        await until(lambda: version(cache) == "199")
        assert (await bus.stream_state(streams.STATE)).last_sequence < 10


async def test_a_reader_that_comes_later_gets_everything(bus: Bus) -> None:
    async with publishing(bus) as publisher:
        for number in range(300):
            publisher.put(DEPLOYMENTS, obj(f"d{number}", number + 1))
        await publisher.mark_synced(DEPLOYMENTS, "300")
        async with reading(bus) as (cache, reader):
            await asyncio.wait_for(reader.synced(), 10)
            assert cache.count(DEPLOYMENTS) == 300


async def test_a_publisher_that_lost_its_election_cannot_overwrite(bus: Bus) -> None:
    async with publishing(bus) as stale, publishing(bus) as active:
        stale.put(DEPLOYMENTS, obj("a", 5))
        await stale.flushed(DEPLOYMENTS)
        active.put(DEPLOYMENTS, obj("a", 9))
        await active.flushed(DEPLOYMENTS)
        stale.put(DEPLOYMENTS, obj("a", 7))
        await stale.flushed(DEPLOYMENTS)
        last = await bus.last_message(streams.STATE, subjects.state_subject(CLUSTER, DEPLOYMENTS.id, KEY))
        assert last is not None
        assert last.headers["resourceVersion"] == "9"
        # One that is ahead of it does get through, though its sequence is out of date too.
        stale.put(DEPLOYMENTS, obj("a", 12))
        await stale.flushed(DEPLOYMENTS)
        last = await bus.last_message(streams.STATE, subjects.state_subject(CLUSTER, DEPLOYMENTS.id, KEY))
        assert last is not None
        assert last.headers["resourceVersion"] == "12"


async def test_a_stale_deletion_does_not_hit_the_successor(bus: Bus) -> None:
    async with publishing(bus) as stale, publishing(bus) as active:
        stale.put(DEPLOYMENTS, obj("a", 5, uid="old"))
        await stale.flushed(DEPLOYMENTS)
        active.put(DEPLOYMENTS, obj("a", 9, uid="new"))
        await active.flushed(DEPLOYMENTS)
        stale.delete(DEPLOYMENTS, KEY, version_of(obj("a", 6, uid="old")))
        await stale.flushed(DEPLOYMENTS)
        last = await bus.last_message(streams.STATE, subjects.state_subject(CLUSTER, DEPLOYMENTS.id, KEY))
        assert last is not None
        assert (last.headers["uid"], last.headers["change"]) == ("new", "modified")


async def test_the_end_of_an_object_is_final(bus: Bus) -> None:
    async with publishing(bus) as active, publishing(bus) as stale:
        active.put(DEPLOYMENTS, obj("a", 5))
        await active.flushed(DEPLOYMENTS)
        active.delete(DEPLOYMENTS, KEY, version_of(obj("a", 6)))
        await active.flushed(DEPLOYMENTS)
        stale.put(DEPLOYMENTS, obj("a", 5))
        await stale.flushed(DEPLOYMENTS)
        last = await bus.last_message(streams.STATE, subjects.state_subject(CLUSTER, DEPLOYMENTS.id, KEY))
        assert last is not None
        assert last.headers["change"] == "deleted"
        # The name may come back.
        active.put(DEPLOYMENTS, obj("a", 8, uid="again"))
        await active.flushed(DEPLOYMENTS)
        assert active.count(DEPLOYMENTS) == 1


async def test_a_new_leader_publishes_what_is_newer_and_buries_what_is_gone(bus: Bus) -> None:
    async with reading(bus, DEPLOYMENTS) as (cache, _):
        async with publishing(bus) as first:
            for name in ("a", "b", "c"):
                first.put(DEPLOYMENTS, obj(name, 5))
            await first.mark_synced(DEPLOYMENTS, "5")
        async with publishing(bus) as second:
            before = (await bus.stream_state(streams.STATE)).last_sequence
            listed = [obj("a", 5), obj("b", 8)]
            taken = [second.put(DEPLOYMENTS, found) for found in listed]
            assert taken == [False, True]
            assert await second.sweep(DEPLOYMENTS, {key_of(found) for found in listed}) == 1
            await second.mark_synced(DEPLOYMENTS, "9")
            # b, the tombstone of c, the marker: a is not published again.
            assert (await bus.stream_state(streams.STATE)).last_sequence == before + 3
        await until(lambda: names(cache) == ["a", "b"] and version(cache, "b") == "8")


async def test_a_cluster_that_was_set_up_anew_replaces_the_old_one(bus: Bus) -> None:
    """Its resourceVersions begin again, so the old objects' are higher."""
    async with reading(bus) as (cache, _):
        async with publishing(bus) as first:
            first.put(DEPLOYMENTS, obj("a", 90_000, uid="old"))
            first.put(DEPLOYMENTS, obj("gone", 90_001, uid="old-gone"))
            await first.flushed(DEPLOYMENTS)
        async with publishing(bus) as second:
            second.put(DEPLOYMENTS, obj("a", 40, uid="new", created="2026-01-02T00:00:00Z"))
            await second.sweep(DEPLOYMENTS, {KEY})
            await second.mark_synced(DEPLOYMENTS, "41")
        await until(lambda: version(cache) == "40" and names(cache) == ["a"])


async def test_nothing_is_lost_while_the_server_is_away(rig: Any) -> None:
    async with publishing(rig.bus) as publisher, reading(rig.bus) as (cache, _):
        publisher.put(DEPLOYMENTS, obj("a", 5))
        await until(lambda: version(cache) == "5")
        await rig.stop()
        await rig.until_degraded()
        for name in ("a", "b", "c"):
            publisher.put(DEPLOYMENTS, obj(name, 7))
        assert publisher.backlog == 3
        await asyncio.sleep(0.2)
        # What is known is served all the while.
        assert version(cache) == "5"
        await rig.start()
        await asyncio.wait_for(publisher.flushed(DEPLOYMENTS), 20)
        await until(lambda: names(cache) == ["a", "b", "c"] and version(cache) == "7")
        assert not publisher.lost.is_set()


async def test_lost_data_is_noticed_and_published_again(rig: Any) -> None:
    async with publishing(rig.bus) as publisher, reading(rig.bus) as (cache, reader):
        publisher.put(DEPLOYMENTS, obj("a", 5))
        publisher.put(DEPLOYMENTS, obj("vanishes", 5))
        await publisher.mark_synced(DEPLOYMENTS, "5")
        await asyncio.wait_for(reader.synced(), 10)
        await rig.stop()
        await rig.lose_data()
        await rig.start()
        # Nothing is published: the reconnection alone makes it look.
        await asyncio.wait_for(publisher.lost.wait(), 5)
        publisher.start_over()
        # An empty stream is not an empty cluster: nothing disappears before the list is complete.
        publisher.put(DEPLOYMENTS, obj("a", 5))
        await asyncio.wait_for(publisher.flushed(DEPLOYMENTS), 10)
        assert names(cache) == ["a", "vanishes"]
        await publisher.mark_synced(DEPLOYMENTS, "9")
        await until(lambda: names(cache) == ["a"])


async def test_a_purged_stream_is_noticed_by_the_next_publish(bus: Bus) -> None:
    async with publishing(bus) as publisher:
        publisher.put(DEPLOYMENTS, obj("a", 5))
        await publisher.flushed(DEPLOYMENTS)
        await bus.remove(streams.STATE, 1)
        publisher.put(DEPLOYMENTS, obj("a", 6))
        await publisher.flushed(DEPLOYMENTS)
        assert publisher.lost.is_set()


async def test_the_same_versions_are_stored_again_after_a_purge(bus: Bus) -> None:
    """Their message ids must not make duplicates of them: what they duplicate is gone."""
    async with publishing(bus) as publisher:
        publisher.put(DEPLOYMENTS, obj("a", 5))
        await publisher.flushed(DEPLOYMENTS)
        await bus.remove(streams.STATE, 1)
        await publisher.audit()
        assert publisher.lost.is_set()
        publisher.start_over()
        publisher.put(DEPLOYMENTS, obj("a", 5))
        await publisher.flushed(DEPLOYMENTS)
        last = await bus.last_message(streams.STATE, subjects.state_subject(CLUSTER, DEPLOYMENTS.id, KEY))
        assert last is not None


async def test_resources_are_synced_each_on_its_own(bus: Bus) -> None:
    async with publishing(bus, DEPLOYMENTS, SERVICES) as publisher, reading(bus, DEPLOYMENTS, SERVICES) as (_, reader):
        await publisher.mark_synced(DEPLOYMENTS, "1")
        await until(lambda: reader.is_synced(DEPLOYMENTS))
        assert not reader.is_synced(SERVICES)
        await publisher.mark_synced(SERVICES, "1")
        await asyncio.wait_for(reader.synced(), 10)


async def test_damaged_and_foreign_messages_do_not_stop_the_reader(bus: Bus) -> None:
    async with publishing(bus) as publisher, reading(bus) as (cache, _):
        prefix = f"dynamo.state.v1.{CLUSTER}.deployments%2Eapps"
        headers = {"uid": "u", "resourceVersion": "1", "created": "", "change": "added"}
        await bus.publish(f"{prefix}.ns.broken", b"{", headers=headers)
        await bus.publish(f"{prefix}.ns.list", b"[]", headers=headers)
        await bus.publish(f"{prefix}.ns.hollow", b"{}", headers=headers)
        await bus.publish(f"{prefix}.too.many.tokens", b"{}")
        publisher.put(DEPLOYMENTS, obj("a", 5))
        await until(lambda: version(cache) == "5")
        assert names(cache) == ["a"]


async def test_one_change_is_one_trace(bus: Bus) -> None:
    """From the span in which an object was put to the listeners of a reader's cache."""
    tracer = TracerProvider().get_tracer("test")
    seen: list[int] = []
    async with publishing(bus) as publisher, reading(bus) as (cache, _):
        cache.on_change(lambda *_: seen.append(trace.get_current_span().get_span_context().trace_id))
        with tracer.start_as_current_span("change") as span:
            publisher.put(DEPLOYMENTS, obj("a", 5))
        await until(lambda: version(cache) == "5")
        publisher.put(DEPLOYMENTS, obj("a", 6))
        await until(lambda: version(cache) == "6")
    assert seen == [span.get_span_context().trace_id, 0]
