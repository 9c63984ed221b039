"""STATE end to end, on every bus: fenced publishing, reading, and how both handle a server that goes away."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dynamo_shared.api.resources import DEPLOYMENTS, SERVICES, ObjectKey, Resource, key_of
from dynamo_shared.bus import Bus, streams
from dynamo_shared.bus.protocol import Message
from dynamo_shared.state import ObjectCache, StateReader, messages
from dynamo_shared.state.publisher.ledger import Ledger
from dynamo_shared.state.versions import Version, version_of
from dynamo_shared.wire import subjects
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from tests.building.tasks import in_background
from tests.building.waiting import until
from tests.contract.bus.states import CLUSTER, obj, publishing, put

KEY = ObjectKey("ns", "a")
SUBJECT = subjects.state_subject(CLUSTER, DEPLOYMENTS.id, KEY)


@asynccontextmanager
async def reading(bus: Bus, *resources: Resource) -> AsyncIterator[tuple[ObjectCache, StateReader]]:
    cache = ObjectCache()
    reader = StateReader(bus, CLUSTER, resources or (DEPLOYMENTS,), cache)
    async with in_background(reader.run()):
        yield cache, reader


def version(cache: ObjectCache, name: str = "a") -> str | None:
    observed = cache.get(DEPLOYMENTS, ObjectKey("ns", name))
    return observed["metadata"]["resourceVersion"] if observed else None


def names(cache: ObjectCache) -> list[str]:
    return sorted(key.name for key in cache.keys(DEPLOYMENTS))


async def last_message(bus: Bus) -> Message:
    """The message of the object in STATE."""
    message = await bus.last_message(streams.STATE, SUBJECT)
    assert message is not None
    return message


async def test_what_is_put_is_read(bus: Bus) -> None:
    async with publishing(bus) as publisher, reading(bus) as (cache, reader):
        assert publisher.put(DEPLOYMENTS, obj("a", 5))
        assert not publisher.put(DEPLOYMENTS, obj("a", 5))
        await publisher.flushed(DEPLOYMENTS)
        await until(lambda: version(cache) == "5")
        assert not reader.is_synced(DEPLOYMENTS)
        await publisher.mark_synced(DEPLOYMENTS, "5")
        await asyncio.wait_for(reader.synced(), 60)
        observed = cache.get(DEPLOYMENTS, KEY)
        assert observed is not None
        assert "managedFields" not in observed["metadata"]
        publisher.delete(DEPLOYMENTS, KEY, version_of(obj("a", 6)))
        await until(lambda: version(cache) is None)


async def test_a_reader_knows_which_resources_the_cluster_lacks_and_when_they_appear(bus: Bus) -> None:
    async with publishing(bus) as publisher, reading(bus) as (_, reader):
        heard: list[bool] = []
        reader.on_resync(lambda resource: heard.append(reader.is_served(resource)))
        await publisher.mark_synced(DEPLOYMENTS, "", served=False)
        await asyncio.wait_for(reader.synced(), 60)
        assert not reader.is_served(DEPLOYMENTS)
        await publisher.mark_synced(DEPLOYMENTS, "5")
        await until(lambda: reader.is_served(DEPLOYMENTS))
        assert heard == [False, True]


async def test_headers_have_what_a_reader_needs(bus: Bus) -> None:
    async with publishing(bus) as publisher:
        await put(publisher, obj("a", 5))
        message = await last_message(bus)
        expected = {"uid": "uid-a", "resourceVersion": "5", "generation": "3", "change": "modified"}
        assert expected.items() <= dict(message.headers).items()
        publisher.delete(DEPLOYMENTS, KEY, version_of(obj("a", 6)))
        await publisher.flushed(DEPLOYMENTS)
        message = await last_message(bus)
        assert (message.payload, message.headers["change"], message.headers["resourceVersion"]) == (b"", "deleted", "6")


async def test_a_burst_of_changes_ends_with_the_newest(bus: Bus) -> None:
    async with publishing(bus) as publisher, reading(bus) as (cache, _):
        await put(publisher, *(obj("a", number) for number in range(1, 200)))
        await until(lambda: version(cache) == "199")
        assert (await bus.stream_state(streams.STATE)).last_sequence < 10


async def test_a_late_reader_gets_everything(bus: Bus) -> None:
    async with publishing(bus) as publisher:
        for number in range(300):
            publisher.put(DEPLOYMENTS, obj(f"d{number}", number + 1))
        await publisher.mark_synced(DEPLOYMENTS, "300")
        async with reading(bus) as (cache, reader):
            await asyncio.wait_for(reader.synced(), 60)
            assert cache.count(DEPLOYMENTS) == 300


async def last(bus: Bus) -> str:
    """The last state of the object in STATE: uid and version, or `gone`."""
    headers = (await last_message(bus)).headers
    return "gone" if headers["change"] == "deleted" else f"{headers['uid']}-{headers['resourceVersion']}"


class ApiServer:
    """The objects of the cluster; publishers ask it when STATE has something else than they published."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, dict[str, Any]] = {}

    async def __call__(self, resource: Resource, key: ObjectKey) -> dict[str, Any] | None:
        return self.objects.get(key)


async def test_a_publisher_that_lost_its_election_publishes_nothing_outdated(bus: Bus) -> None:
    truth = ApiServer()
    async with publishing(bus, truth=truth) as stale, publishing(bus, truth=truth) as active:
        await put(stale, obj("a", 5))
        truth.objects[KEY] = obj("a", 9)
        await put(active, obj("a", 9))
        await put(stale, obj("a", 7))
        assert await last(bus) == "uid-a-9"
        truth.objects[KEY] = obj("a", 12)
        await put(stale, obj("a", 12))
        assert await last(bus) == "uid-a-12"


async def test_a_publisher_that_lost_its_election_in_a_burst_publishes_nothing_outdated(bus: Bus) -> None:
    truth = ApiServer()
    async with publishing(bus, truth=truth) as stale, publishing(bus, truth=truth) as active:
        truth.objects[KEY] = obj("a", 9)
        await put(active, obj("a", 9))
        for number in (5, 6):
            stale.put(DEPLOYMENTS, obj("a", number))
            while not stale._outbox.under_way:
                await asyncio.sleep(0)
        assert stale._outbox.is_waiting(SUBJECT)
        await stale.flushed(DEPLOYMENTS)
        assert await last(bus) == "uid-a-9"


async def test_a_publisher_that_lost_its_election_publishes_nothing_that_it_could_not_verify(bus: Bus) -> None:
    """Its API server fails at first, and reports another change while the publisher asks again."""
    truth, asked = ApiServer(), 0

    async def failing(resource: Resource, key: ObjectKey) -> dict[str, Any] | None:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise OSError("away")
        if asked == 2:
            stale.put(DEPLOYMENTS, obj("a", 6))
        return await truth(resource, key)

    said: list[str] = []
    async with publishing(bus, truth=failing) as stale, publishing(bus, truth=truth) as active:
        truth.objects[KEY] = obj("a", 9)
        await put(active, obj("a", 9))
        async with reading(bus) as (cache, _):
            await until(lambda: version(cache) == "9")
            cache.on_change(lambda *_: said.append(version(cache) or "gone"))
            await put(stale, obj("a", 5))
            truth.objects[KEY] = obj("a", 12)
            active.put(DEPLOYMENTS, obj("a", 12))
            await until(lambda: version(cache) == "12")
    assert said == ["12"]


async def test_a_stale_deletion_does_not_delete_the_successor(bus: Bus) -> None:
    truth = ApiServer()
    async with publishing(bus, truth=truth) as stale, publishing(bus, truth=truth) as active:
        await put(stale, obj("a", 5, uid="old"))
        truth.objects[KEY] = obj("a", 9, uid="new")
        await put(active, obj("a", 9, uid="new"))
        stale.delete(DEPLOYMENTS, KEY, version_of(obj("a", 6, uid="old")))
        await stale.flushed(DEPLOYMENTS)
        assert await last(bus) == "new-9"


async def test_a_stale_publisher_does_not_bring_back_a_deleted_object(bus: Bus) -> None:
    truth = ApiServer()
    async with publishing(bus, truth=truth) as active, publishing(bus, truth=truth) as stale:
        await put(active, obj("a", 5))
        active.delete(DEPLOYMENTS, KEY, version_of(obj("a", 6)))
        await active.flushed(DEPLOYMENTS)
        await put(stale, obj("a", 5))
        assert await last(bus) == "gone"
        # The name may be used again.
        truth.objects[KEY] = obj("a", 8, uid="again")
        await put(active, obj("a", 8, uid="again"))
        assert active.count(DEPLOYMENTS) == 1


async def test_state_equals_the_api_server_after_its_data_is_restored(bus: Bus) -> None:
    """Lower versions, another clock, an object that is restored under its uid: the list decides."""
    async with reading(bus) as (cache, _), publishing(bus) as publisher:
        publisher.put(DEPLOYMENTS, obj("a", 900))
        publisher.put(DEPLOYMENTS, obj("b", 901, uid="late", created="2026-01-01T00:00:09Z"))
        publisher.delete(DEPLOYMENTS, ObjectKey("ns", "c"), version_of(obj("c", 902)))
        await until(lambda: names(cache) == ["a", "b"])
        publisher.put(DEPLOYMENTS, obj("a", 40))
        publisher.put(DEPLOYMENTS, obj("b", 41, uid="early", created="2026-01-01T00:00:01Z"))
        publisher.put(DEPLOYMENTS, obj("c", 42))
        await until(lambda: (version(cache), version(cache, "b"), version(cache, "c")) == ("40", "41", "42"))


async def test_a_marker_of_the_previous_watcher_is_valid_until_the_resource_is_listed_again(bus: Bus) -> None:
    both = (DEPLOYMENTS, SERVICES)
    async with publishing(bus, *both) as before:
        for resource in both:
            await before.mark_synced(resource, "5")
    async with publishing(bus, *both) as active:
        # For example, this watcher may not list Services.
        await active.mark_synced(DEPLOYMENTS, "6")
        await active._audit.scan()
        waited: list[list[str]] = []
        async with reading(bus, *both) as (_, reader), asyncio.timeout(60):
            await reader.synced(waited.append)
        assert waited[0] == [DEPLOYMENTS.id, SERVICES.id]


FORGED = "dynamo.state.v1.c.deployments%2Eapps"


async def forge(bus: Bus, name: str, obj: dict[str, Any]) -> None:
    headers = messages.object_headers(obj, messages.ChangeType.MODIFIED)
    await bus.publish(f"{FORGED}.{name}", messages.encode_object(obj), headers=headers)


async def test_the_watcher_repairs_forged_messages(bus: Bus) -> None:
    """With the watcher's own rights: other versions, the same version, another payload, objects that do not exist."""
    truth = ApiServer()
    truth.objects = {ObjectKey("ns", name): obj(name, 5) for name in ("a", "b", "c", "d")}
    async with publishing(bus, truth=truth) as publisher, reading(bus) as (cache, reader):
        said: list[str] = []
        reader.on_quarantine(said.append)
        for each in truth.objects.values():
            publisher.put(DEPLOYMENTS, each)
        await publisher.mark_synced(DEPLOYMENTS, "5")
        await asyncio.wait_for(reader.synced(), 60)
        await forge(bus, "ns.a", obj("a", 2**60))
        await forge(bus, "ns.b", {**obj("b", 5), "spec": {"replicas": 99}})
        await forge(bus, "ns.c", obj("a", 6))
        await forge(bus, "ns.invented", obj("invented", 7))
        await forge(bus, "too.many.tokens", obj("x", 7))
        tombstone = messages.tombstone_headers(version_of(obj("d", 9)))
        await bus.publish(f"{FORGED}.ns.d", b"", headers=tombstone)
        await until(lambda: version(cache, "invented") == "7" and version(cache, "d") is None)
        assert version(cache) == str(2**60)
        await until(lambda: said and "2 invalid messages" in said[-1])
        await publisher._audit.scan()
        await publisher.flushed(DEPLOYMENTS)
        await until(lambda: names(cache) == ["a", "b", "c", "d"] and version(cache) == "5")
        assert [cache.get(DEPLOYMENTS, key)["spec"] for key in sorted(truth.objects)] == [{"replicas": 5}] * 4  # type: ignore[index]
        await until(lambda: said[-1] == "")
        assert not publisher.lost.is_set()
        before = (await bus.stream_state(streams.STATE)).last_sequence
        await publisher._audit.scan()
        await publisher.flushed(DEPLOYMENTS)
        assert (await bus.stream_state(streams.STATE)).last_sequence == before


async def test_the_next_change_repairs_a_forged_message(bus: Bus) -> None:
    truth = ApiServer()
    async with publishing(bus, truth=truth) as publisher:
        await put(publisher, obj("a", 5))
        await forge(bus, "ns.a", obj("a", 2**60))
        truth.objects[KEY] = obj("a", 6)
        await put(publisher, obj("a", 6))
        assert await last(bus) == "uid-a-6"


async def test_the_next_watcher_repairs_messages_that_were_forged_while_none_was_active(bus: Bus) -> None:
    """Even under the same uid and resourceVersion: payloads are compared at the start."""
    async with publishing(bus) as first:
        await put(first, obj("a", 5), obj("b", 5))
    await forge(bus, "ns.a", {**obj("a", 5), "spec": {"replicas": 99}})
    async with publishing(bus) as second, reading(bus) as (cache, _):
        assert [second.put(DEPLOYMENTS, obj(name, 5)) for name in ("a", "b")] == [True, False]
        await second.flushed(DEPLOYMENTS)
        await until(lambda: (cache.get(DEPLOYMENTS, KEY) or {}).get("spec") == {"replicas": 5})


async def test_a_message_id_that_was_used_before_does_not_suppress_an_object(bus: Bus) -> None:
    """An attacker who guesses the id could keep an object out of STATE; ids are random and differ by publisher."""
    async with publishing(bus) as first, publishing(bus) as second:
        await put(first, obj("a", 5))
        await bus.remove(streams.STATE, 1)
        await put(second, obj("a", 5))
        assert await last(bus) == "uid-a-5"


async def test_a_large_object_is_compressed_and_one_that_decompresses_to_too_much_is_rejected(bus: Bus) -> None:
    async with publishing(bus) as publisher, reading(bus) as (cache, reader):
        said: list[str] = []
        reader.on_quarantine(said.append)
        large = {**obj("a", 5), "spec": {"text": "0123456789abcdef" * (3 << 16)}}
        publisher.put(DEPLOYMENTS, large)
        await until(lambda: version(cache) == "5")
        assert cache.get(DEPLOYMENTS, KEY)["spec"] == large["spec"]  # type: ignore[index]
        message = await last_message(bus)
        assert message.headers["content-encoding"] == "zlib"
        assert len(message.payload) < 100_000
        headers = messages.object_headers(obj("b", 5), messages.ChangeType.ADDED) | {"content-encoding": "zlib"}
        await bus.publish(f"{FORGED}.ns.b", zlib.compress(b" " * (64 << 20)), headers=headers)
        await until(lambda: said)
        assert "larger than" in said[-1]
        assert names(cache) == ["a"]


async def test_a_new_leader_publishes_newer_objects_and_tombstones_of_deleted_ones(bus: Bus) -> None:
    async with reading(bus, DEPLOYMENTS) as (cache, _):
        async with publishing(bus) as first:
            for name in ("a", "b", "c"):
                first.put(DEPLOYMENTS, obj(name, 5))
            await first.mark_synced(DEPLOYMENTS, "5")
        async with publishing(bus) as second:
            before = (await bus.stream_state(streams.STATE)).last_sequence
            listed = [obj("a", 5), obj("b", 8)]
            taken = [second.put(DEPLOYMENTS, each) for each in listed]
            assert taken == [False, True]
            assert await second.sweep(DEPLOYMENTS, {key_of(each) for each in listed}) == 1
            await second.mark_synced(DEPLOYMENTS, "9")
            # b, the tombstone of c, and the marker; a is not published again.
            assert (await bus.stream_state(streams.STATE)).last_sequence == before + 3
        await until(lambda: names(cache) == ["a", "b"] and version(cache, "b") == "8")


async def test_an_object_that_is_put_during_a_sweep_stays(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tasks run while thousands of objects are compared with a list."""
    missing = Ledger.missing
    async with reading(bus) as (cache, _), publishing(bus) as publisher:
        await put(publisher, obj("a", 5), obj("b", 5))

        async def interrupted(*arguments: Any) -> list[tuple[ObjectKey, Version]]:
            result = await missing(*arguments)
            publisher.put(DEPLOYMENTS, obj("a", 6))
            return result

        monkeypatch.setattr(Ledger, "missing", interrupted)
        assert await publisher.sweep(DEPLOYMENTS, ()) == 1
        await until(lambda: names(cache) == ["a"] and version(cache) == "6")


async def test_a_recreated_cluster_replaces_the_old_one(bus: Bus) -> None:
    """Its resourceVersions start again, so those of the old objects are higher."""
    async with reading(bus) as (cache, _):
        async with publishing(bus) as first:
            await put(first, obj("a", 90_000, uid="old"), obj("gone", 90_001, uid="old-gone"))
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
        # Cached objects stay available meanwhile.
        assert version(cache) == "5"
        await rig.start()
        await asyncio.wait_for(publisher.flushed(DEPLOYMENTS), 60)
        await until(lambda: names(cache) == ["a", "b", "c"] and version(cache) == "7")
        assert not publisher.lost.is_set()


async def test_lost_data_is_detected_and_published_again(rig: Any) -> None:
    async with publishing(rig.bus) as publisher, reading(rig.bus) as (cache, reader):
        publisher.put(DEPLOYMENTS, obj("a", 5))
        publisher.put(DEPLOYMENTS, obj("vanishes", 5))
        await publisher.mark_synced(DEPLOYMENTS, "5")
        await asyncio.wait_for(reader.synced(), 60)
        await rig.stop()
        await rig.lose_data()
        await rig.start()
        # Nothing is published: only the reconnection triggers the check.
        await asyncio.wait_for(publisher.lost.wait(), 60)
        publisher.start_over()
        # An empty stream does not mean an empty cluster: nothing disappears before the list is complete.
        publisher.put(DEPLOYMENTS, obj("a", 5))
        await asyncio.wait_for(publisher.flushed(DEPLOYMENTS), 60)
        assert names(cache) == ["a", "vanishes"]
        await publisher.mark_synced(DEPLOYMENTS, "9")
        await until(lambda: names(cache) == ["a"])


async def test_the_next_publish_detects_a_purged_stream(bus: Bus) -> None:
    async with publishing(bus) as publisher:
        await put(publisher, obj("a", 5))
        await bus.remove(streams.STATE, 1)
        await put(publisher, obj("a", 6))
        assert publisher.lost.is_set()


async def test_the_same_versions_are_stored_again_after_a_purge(bus: Bus) -> None:
    """Their message ids must not count as duplicates: the originals are gone."""
    async with publishing(bus) as publisher:
        await put(publisher, obj("a", 5))
        await bus.remove(streams.STATE, 1)
        await publisher._audit.check()
        assert publisher.lost.is_set()
        publisher.start_over()
        await put(publisher, obj("a", 5))
        assert await last(bus) == "uid-a-5"


async def test_resources_sync_independently(bus: Bus) -> None:
    async with publishing(bus, DEPLOYMENTS, SERVICES) as publisher, reading(bus, DEPLOYMENTS, SERVICES) as (_, reader):
        await publisher.mark_synced(DEPLOYMENTS, "1")
        await until(lambda: reader.is_synced(DEPLOYMENTS))
        assert not reader.is_synced(SERVICES)
        await publisher.mark_synced(SERVICES, "1")
        await asyncio.wait_for(reader.synced(), 60)


async def test_a_write_of_the_service_itself_is_not_a_change_when_state_reports_it(bus: Bus) -> None:
    async with publishing(bus) as publisher, reading(bus) as (cache, _):
        cache.put(DEPLOYMENTS, {**obj("a", 5), "answer": "with managed fields"})
        changes: list[str] = []
        cache.on_change(lambda _resource, key, _old, _new: changes.append(key.name))
        publisher.put(DEPLOYMENTS, obj("a", 5))
        publisher.put(DEPLOYMENTS, obj("b", 6))
        await until(lambda: version(cache, "b") == "6")
        assert changes == ["b"]
        publisher.put(DEPLOYMENTS, obj("a", 7))
        await until(lambda: version(cache) == "7")
        assert changes == ["b", "a"]


async def test_one_change_is_one_trace(bus: Bus) -> None:
    """From the span that puts an object to the listeners of a reader's cache."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("test")
    observed: list[int] = []
    async with publishing(bus) as publisher, reading(bus) as (cache, _):
        cache.on_change(lambda *_: observed.append(trace.get_current_span().get_span_context().trace_id))
        with tracer.start_as_current_span("change") as span:
            publisher.put(DEPLOYMENTS, obj("a", 5))
        await until(lambda: version(cache) == "5")
        publisher.put(DEPLOYMENTS, obj("a", 6))
        await until(lambda: version(cache) == "6")
    assert observed == [span.get_span_context().trace_id, 0]
