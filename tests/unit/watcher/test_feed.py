"""The watcher without servers: what it publishes for the changes that it receives, and when it starts over."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from dynamo_shared.aio import EndedByItselfError, ended
from dynamo_shared.api.resources import DEPLOYMENTS, NODES, SERVICES, ObjectKey, Resource
from dynamo_shared.bus import streams
from dynamo_shared.bus.protocol import Message, Start
from dynamo_shared.kube.reflector import ObjectChange, Synced
from dynamo_shared.state import ObjectCache, StateReader
from dynamo_shared.state.publisher import audit, outbox
from dynamo_shared.wire import subjects
from dynamo_watcher import app
from dynamo_watcher.feed import Feed
from dynamo_watcher.metrics import WatcherMetrics
from dynamo_watcher.resources import WATCHED, Watched
from prometheus_client import CollectorRegistry

from tests.building.leadership import Leadership
from tests.building.memory_bus import MemoryBus
from tests.building.tasks import in_background
from tests.building.waiting import turns, until
from tests.unit.watcher.feeding import CLUSTER, Cluster, feeding


@asynccontextmanager
async def reading(bus: MemoryBus) -> AsyncIterator[ObjectCache]:
    cache = ObjectCache()
    reader = StateReader(bus, CLUSTER, [DEPLOYMENTS, SERVICES], cache)
    async with in_background(reader.run()):
        await asyncio.wait_for(reader.synced(), 60)
        yield cache


def names(cache: ObjectCache, resource: Resource = DEPLOYMENTS) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in cache.list(resource))


async def test_a_missing_resource_is_reported_once_and_watched_when_it_is_installed() -> None:
    bus, cluster = MemoryBus(), Cluster()
    cluster.absent.add(SERVICES)
    cluster.put(SERVICES, "later")
    async with feeding(bus, cluster), reading(bus) as cache:
        assert names(cache, SERVICES) == []
        written = (await bus.stream_state(streams.STATE)).last_sequence
        for _ in range(20):
            await asyncio.sleep(0)
        assert (await bus.stream_state(streams.STATE)).last_sequence == written
        cluster.absent.clear()
        await until(lambda: names(cache, SERVICES) == ["later"])


async def test_the_next_watcher_reports_objects_of_state_that_it_does_not_serve() -> None:
    bus, cluster = MemoryBus(), Cluster()
    cluster.put(DEPLOYMENTS, "a")
    async with feeding(bus, cluster), reading(bus):
        assert cluster.served == {DEPLOYMENTS: False, SERVICES: False}
    async with feeding(bus, cluster), reading(bus):
        await until(lambda: cluster.served == {DEPLOYMENTS: True, SERVICES: False})


async def test_existing_objects_and_changes_are_in_state() -> None:
    bus, cluster = MemoryBus(), Cluster()
    cluster.put(DEPLOYMENTS, "a")
    async with feeding(bus, cluster), reading(bus) as cache:
        assert names(cache) == ["a"]
        cluster.put(DEPLOYMENTS, "b")
        cluster.put(SERVICES, "s")
        await until(lambda: names(cache) == ["a", "b"] and names(cache, SERVICES) == ["s"])
        cluster.delete(DEPLOYMENTS, "a")
        await until(lambda: names(cache) == ["b"])


async def test_the_next_leader_publishes_tombstones_for_objects_that_vanished_meanwhile() -> None:
    bus, cluster = MemoryBus(), Cluster()
    cluster.put(DEPLOYMENTS, "a")
    cluster.put(DEPLOYMENTS, "b")
    async with feeding(bus, cluster), reading(bus) as cache:
        assert names(cache) == ["a", "b"]
    cluster.listeners.clear()
    cluster.delete(DEPLOYMENTS, "a")
    before = (await bus.stream_state(streams.STATE)).last_sequence
    async with reading(bus) as cache, feeding(bus, cluster):
        await until(lambda: names(cache) == ["b"])
        # The tombstone, and after it the two markers; b is already there.
        await until(lambda: bus.stream(streams.STATE).last_sequence == before + 3)


async def test_lost_state_is_filled_again_and_reported() -> None:
    bus, cluster = MemoryBus(), Cluster()
    cluster.put(DEPLOYMENTS, "a")
    async with feeding(bus, cluster), reading(bus) as cache:
        lists = cluster.lists
        bus.disconnect()
        bus.lose_data()
        bus.reconnect()
        cluster.put(DEPLOYMENTS, "b")
        await until(lambda: names(cache) == ["a", "b"] and cluster.lists > lists)
        subscription = await bus.subscribe(streams.EVENTS, ["dynamo.evt.v1.c._.platform.c.resync"], start=Start.ALL)
        async with asyncio.timeout(60):
            item = await subscription.__anext__()
            while not isinstance(item, Message):
                item = await subscription.__anext__()
        assert item.headers["ce-type"] == "com.nvidia.dynamo.platform.resync.v1"
        assert (await bus.stream_state(streams.STATE)).messages == 4


async def test_a_reconnection_while_state_is_read_does_not_count_as_lost_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection leads to a check of STATE, but nothing has been read yet to compare it with."""
    monkeypatch.setattr(audit, "MOST_SUSPECTS", 1)
    bus, cluster = MemoryBus(), Cluster()
    for name in ("a", "b", "c"):
        cluster.put(DEPLOYMENTS, name)
    async with feeding(bus, cluster), reading(bus):
        pass
    bus.disconnect()
    lists = cluster.lists
    async with feeding(bus, cluster):
        await asyncio.sleep(0.1)
        bus.reconnect()
        async with reading(bus) as cache:
            assert names(cache) == ["a", "b", "c"]
            cluster.put(SERVICES, "s")
            await until(lambda: names(cache, SERVICES) == ["s"])
    # One list for each resource.
    assert cluster.lists == lists + 2


async def test_memory_is_bounded_while_state_accepts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watcher does not have the memory for all objects of a large cluster."""
    monkeypatch.setattr(outbox, "MOST_BYTES", 10_000)
    bus, cluster = MemoryBus(), Cluster()
    async with feeding(bus, cluster) as feed, reading(bus) as cache:
        bus.disconnect()
        for number in range(50):
            cluster.put(DEPLOYMENTS, f"d-{number:02}")
        cluster.put(DEPLOYMENTS, "d-00")
        await turns(100)
        assert 0 < feed._publisher.backlog < 10
        bus.reconnect()
        await until(lambda: len(names(cache)) == 50 and not feed._publisher.backlog)
        cluster.put(DEPLOYMENTS, "d-50")
        await until(lambda: len(names(cache)) == 51 and not feed._publisher.backlog)
        assert feed._publisher._outbox._size == 0


async def test_namespaces_together_are_one_resource() -> None:
    bus, cluster = MemoryBus(), Cluster()
    for namespace in ("n1", "n2", "other"):
        cluster.put(DEPLOYMENTS, f"in-{namespace}", namespace)
    async with feeding(bus, cluster, namespaces=("n1", "n2")), reading(bus) as cache:
        assert names(cache) == ["in-n1", "in-n2"]
    # With fewer namespaces, objects that are no longer watched leave STATE.
    async with reading(bus) as cache, feeding(bus, cluster, namespaces=("n1",)):
        await until(lambda: names(cache) == ["in-n1"])


async def test_an_object_created_while_another_namespace_is_listed_stays() -> None:
    """It is not in the list of its namespace, which is complete already."""
    bus, cluster = MemoryBus(), Cluster()
    may_list = cluster.waiting["slow"] = asyncio.Event()
    async with feeding(bus, cluster, namespaces=("fast", "slow")) as feed:
        await until(lambda: cluster.lists == 2)
        cluster.put(DEPLOYMENTS, "new", "fast")
        await until(lambda: feed._publisher.count(DEPLOYMENTS) == 1)
        may_list.set()
        async with reading(bus) as cache:
            assert names(cache) == ["new"]


async def test_a_namespace_that_cannot_be_listed_keeps_no_deleted_objects_of_the_others() -> None:
    """A served namespace was deleted, and the rights in it: after a restart of the watcher, deleted graphs stayed."""
    bus, cluster = MemoryBus(), Cluster()
    for name, namespace in (("deleted", "n1"), ("unknown", "closed")):
        cluster.put(DEPLOYMENTS, name, namespace)
    async with feeding(bus, cluster, namespaces=("n1", "closed")), reading(bus) as cache:
        assert names(cache) == ["deleted", "unknown"]
    del cluster.objects[DEPLOYMENTS][ObjectKey("n1", "deleted")]
    cluster.waiting["closed"] = asyncio.Event()
    async with reading(bus) as cache, feeding(bus, cluster, namespaces=("n1", "closed")):
        await until(lambda: names(cache) == ["unknown"])


async def test_cluster_scoped_objects_are_watched_although_only_some_namespaces_are_served() -> None:
    """Another watcher has just published a node: this one reads it, and it exists."""
    bus, cluster = MemoryBus(), Cluster()
    node = subjects.state_subject(CLUSTER, NODES.id, ObjectKey("", "node"))

    async def lookup(_watched: Watched, key: ObjectKey) -> dict[str, Any] | None:
        return cluster.objects[NODES].get(key)

    cluster.put(NODES, "node", "")
    async with feeding(bus, cluster, watched=(Watched(NODES),), namespaces=("n1", "n2"), lookup=lookup) as feed:
        await until(lambda: feed._publisher.count(NODES) == 1)
        await bus.publish(node, b"{}")
        cluster.put(NODES, "node", "")
        await until(lambda: not feed._publisher.backlog and bus.stream(streams.STATE).last_sequence > 3)
        last = await bus.last_message(streams.STATE, node)
        assert last is not None
        assert json.loads(last.payload or b"{}") == cluster.objects[NODES][ObjectKey("", "node")]
    assert cluster.lists == 1


@pytest.mark.parametrize("error", [RuntimeError("broken"), asyncio.CancelledError(), None], ids=repr)
async def test_a_follower_that_ends_ends_the_feed(error: BaseException | None) -> None:
    """In one of two namespaces. A library may raise CancelledError without a call of cancel()."""

    async def broken(_: Watched, namespace: str, *__: Any) -> AsyncGenerator[ObjectChange | Synced, None]:
        if namespace == "whole":
            await asyncio.Event().wait()
        if error is not None:
            raise error
        return
        yield

    metrics = WatcherMetrics(CollectorRegistry())
    feed = Feed(broken, MemoryBus(), CLUSTER, (Watched(DEPLOYMENTS),), metrics, namespaces=("whole", "broken"))
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(feed.run(), 60)
    assert caught.group_contains(type(error) if isinstance(error, RuntimeError) else EndedByItselfError)


async def test_one_watcher_is_active_and_stops_when_it_loses_the_election(monkeypatch: pytest.MonkeyPatch) -> None:
    from dynamo_shared.runtime import Health, HealthState, Settings
    from dynamo_shared.runtime.metrics import Metrics

    bus, cluster, leadership, health, metrics = MemoryBus(), Cluster(), Leadership(), Health(), Metrics()
    monkeypatch.setattr(app, "reflecting", lambda _: cluster.source)
    context: Any = SimpleNamespace(
        bus=bus,
        kube=SimpleNamespace(acting_as=lambda _: None),
        settings=Settings.model_validate({"platform": {"clusterName": CLUSTER}}),
        metrics=metrics,
        leadership=lambda _: leadership,
        health=health,
    )

    def word() -> tuple[str, str]:
        part: Any = health.report()["parts"]
        return part["watcher"]["state"], part["watcher"]["message"]

    task = asyncio.create_task(app.WatcherService().run(context))
    await asyncio.sleep(0.05)
    assert cluster.lists == 0
    assert word() == (HealthState.OK.value, "standby")
    leadership.elected.set()
    await until(lambda: cluster.lists == len(WATCHED))
    assert word() == (HealthState.OK.value, "active")
    objects = metrics.registry.get_sample_value
    await until(lambda: objects("dynamo_watcher_objects", {"resource": NODES.id}) is not None)
    cluster.health(False, "forbidden")
    assert word()[0] == HealthState.DEGRADED.value
    assert "forbidden" in word()[1]
    cluster.health(True, "")
    bus.disconnect()
    assert word() == (HealthState.DEGRADED.value, "NATS: disconnected")
    bus.reconnect()
    leadership.elected.clear()
    leadership.lost.set()
    await until(lambda: word() == (HealthState.OK.value, "standby"))
    # Otherwise a sum over all replicas would count the objects twice.
    assert objects("dynamo_watcher_objects", {"resource": NODES.id}) is None
    await ended(task)


@pytest.mark.parametrize(
    ("owner", "included"),
    [
        ({"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "controller": True}, True),
        ({"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment"}, False),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "controller": True}, False),
    ],
)
def test_objects_controlled_by_a_kind_of_the_platform_are_watched_without_a_label(owner, included):
    services = next(each for each in WATCHED if each.resource == SERVICES)
    assert services.includes({"metadata": {"name": "s", "ownerReferences": [owner]}}) == included
    assert not services.includes({"metadata": {"name": "s"}})
