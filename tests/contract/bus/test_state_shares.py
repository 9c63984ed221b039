"""Shares of STATE: a replica reads only the partitions that it holds, while partitions come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from dynamo_shared.api.resources import DEPLOYMENTS, SERVICES, ObjectKey, Resource
from dynamo_shared.bus import Bus
from dynamo_shared.bus.protocol import Item, Subscription
from dynamo_shared.leases.rendezvous import partition_of
from dynamo_shared.state import ObjectCache, StateReader
from dynamo_shared.state.publisher import StatePublisher
from dynamo_shared.state.share import FORGET_AFTER
from dynamo_shared.state.versions import Version, version_of

from tests.building.clock import ManualClock
from tests.building.tasks import in_background
from tests.building.waiting import turns, until
from tests.contract.bus.states import CLUSTER, obj, publishing


class SlowSubscription:
    """A subscription that delivers items only while `flows` is set."""

    def __init__(self, subscription: Subscription, flows: asyncio.Event) -> None:
        self._subscription = subscription
        self._flows = flows

    def __aiter__(self) -> SlowSubscription:
        return self

    async def __anext__(self) -> Item:
        item = await anext(self._subscription)
        await self._flows.wait()
        return item

    async def close(self) -> None:
        await self._subscription.close()


class CountingBus:
    """A bus that counts how often STATE is read."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.readings = 0
        self.flows = asyncio.Event()
        self.flows.set()

    async def subscribe(self, *arguments: Any, **options: Any) -> SlowSubscription:
        subscription = await self._bus.subscribe(*arguments, **options)
        # Recorded now: partitions that are gained before NATS answers belong to this reading.
        self.readings += 1
        return SlowSubscription(subscription, self.flows)


class Replica:
    """One of several: it holds the partitions of namespaces, and reads its share of Deployments and all Services."""

    def __init__(self, bus: Bus) -> None:
        self.cache = ObjectCache()
        self.clock = ManualClock()
        self._kept: frozenset[int] = frozenset()
        self.gathered = asyncio.Event()
        self.gathered.set()
        self.bus = CountingBus(bus)
        self.reader = StateReader(
            cast("Bus", self.bus),
            CLUSTER,
            (DEPLOYMENTS, SERVICES),
            self.cache,
            of_share=(DEPLOYMENTS,),
            keeps=self._keeps,
            clock=self.clock,
            sleep=self._sleep,
        )
        self.covered = asyncio.Event()
        self.gains: list[frozenset[int]] = []
        self.reader.on_covered(self._hear)
        self.heard: list[tuple[ObjectKey, bool]] = []
        self.cache.on_change(lambda _, key, __, new: self.heard.append((key, new is not None)))

    def keep(self, *namespaces: str) -> None:
        before, self._kept = self._kept, partitions(*namespaces)
        self.covered.clear()
        if gained := self._kept - before:
            self.reader.cover(gained)

    def _keeps(self) -> frozenset[int]:
        return self._kept

    async def _sleep(self, _: float) -> None:
        await self.gathered.wait()

    def _hear(self, gained: frozenset[int]) -> None:
        self.gains.append(gained)
        self.covered.set()

    def has(self, resource: Resource = DEPLOYMENTS) -> set[str]:
        return {key.namespace for key in self.cache.keys(resource)}


def partitions(*namespaces: str) -> frozenset[int]:
    return frozenset(partition_of(ObjectKey("", each)) for each in namespaces)


@asynccontextmanager
async def replica(bus: Bus) -> AsyncIterator[Replica]:
    one = Replica(bus)
    async with in_background(one.reader.run()):
        yield one


#: Namespaces in different partitions.
TEAMS = ("team-0", "team-1", "team-3")


@asynccontextmanager
async def teams(bus: Bus) -> AsyncIterator[StatePublisher]:
    async with publishing(bus, DEPLOYMENTS, SERVICES) as publisher:
        for resource in (DEPLOYMENTS, SERVICES):
            for team in TEAMS:
                about = {**resource.type_meta}
                publisher.put(resource, {**obj("a", 5, uid=f"{resource.plural}-{team}", namespace=team), **about})
            await publisher.mark_synced(resource, "5")
        yield publisher


async def test_a_replica_reads_its_share_and_what_is_not_shared(bus: Bus) -> None:
    async with teams(bus), replica(bus) as one:
        await asyncio.wait_for(one.reader.synced(), 60)
        assert (one.has(), one.has(SERVICES)) == (set(), set(TEAMS))
        one.keep("team-0")
        assert not one.reader.covers(ObjectKey("team-0", "a")), "none of it has been read"
        assert set(one.reader.unread()) == {DEPLOYMENTS.id, SERVICES.id}
        await asyncio.wait_for(one.covered.wait(), 60)
        assert not one.reader.unread()
        assert one.reader.covers(ObjectKey("team-0", "a"))
        assert one.has() == {"team-0"}


async def test_changes_in_partitions_of_other_replicas_are_not_read(bus: Bus) -> None:
    async with teams(bus) as publisher, replica(bus) as one:
        one.keep("team-0")
        await asyncio.wait_for(one.covered.wait(), 60)
        publisher.put(DEPLOYMENTS, obj("b", 6, namespace="team-1"))
        publisher.put(DEPLOYMENTS, obj("b", 7, namespace="team-0"))
        await until(lambda: one.cache.get(DEPLOYMENTS, ObjectKey("team-0", "b")))
        assert one.has() == {"team-0"}


async def test_a_gained_partition_is_read_while_the_others_stay_in_use(bus: Bus) -> None:
    async with teams(bus) as publisher, replica(bus) as one:
        one.keep("team-0")
        await asyncio.wait_for(one.covered.wait(), 60)
        publisher.delete(DEPLOYMENTS, ObjectKey("team-1", "a"), version_of(obj("a", 6, namespace="team-1")))
        publisher.put(DEPLOYMENTS, obj("b", 7, namespace="team-1"))
        await publisher.flushed(DEPLOYMENTS)
        one.heard.clear()
        one.keep("team-0", "team-1")
        assert one.reader.covers(ObjectKey("team-0", "a"))
        await asyncio.wait_for(one.covered.wait(), 60)
        assert one.cache.keys(DEPLOYMENTS) == {ObjectKey("team-0", "a"), ObjectKey("team-1", "b")}
        assert one.heard == [(ObjectKey("team-1", "b"), True)], "nothing is new of what was there"


async def test_objects_of_a_released_partition_are_dropped_silently(bus: Bus) -> None:
    async with teams(bus), replica(bus) as one:
        one.keep("team-0", "team-1")
        await asyncio.wait_for(one.covered.wait(), 60)
        one.heard.clear()
        one.keep("team-0")
        one.reader.forget_given_away()
        assert one.has() == {"team-0", "team-1"}, "it may come back"
        one.clock.now += FORGET_AFTER
        one.reader.forget_given_away()
        assert (one.has(), one.has(SERVICES)) == ({"team-0"}, set(TEAMS))
        assert not one.reader.covers(ObjectKey("team-1", "a"))
        assert not one.heard, "the objects are not gone"


async def test_a_partition_that_returns_at_once_is_not_read_again(bus: Bus) -> None:
    async with teams(bus), replica(bus) as one:
        one.keep("team-0", "team-1")
        await asyncio.wait_for(one.covered.wait(), 60)
        one.keep()
        one.keep("team-0", "team-1")
        assert one.covered.is_set()
        assert one.gains[-1] == partitions("team-0", "team-1")


async def test_partitions_that_are_gained_one_after_another_are_read_together(bus: Bus) -> None:
    """Each reading covers all of STATE: 32 readings instead of one would block NATS and the replica."""
    async with teams(bus), replica(bus) as one:
        await asyncio.wait_for(one.reader.synced(), 60)
        one.gathered.clear()
        for count in range(1, len(TEAMS) + 1):
            one.keep(*TEAMS[:count])
            await turns()
        assert one.bus.readings == 1
        one.gathered.set()
        await asyncio.wait_for(one.covered.wait(), 60)
        assert one.has() == set(TEAMS)
        assert (one.bus.readings, one.gains) == (2, [partitions(*TEAMS)])


async def test_another_gained_partition_does_not_abort_the_current_reading(bus: Bus) -> None:
    """Otherwise partitions that are gained faster than a reading takes would never be reconciled."""
    async with teams(bus), replica(bus) as one:
        await asyncio.wait_for(one.reader.synced(), 60)
        one.bus.flows.clear()
        one.keep("team-0")
        await until(lambda: one.bus.readings == 2)
        one.keep("team-0", "team-1")
        await turns()
        assert one.bus.readings == 2
        one.bus.flows.set()
        await until(lambda: len(one.gains) == 2)
        assert one.gains == [partitions("team-0"), partitions("team-1")], "each is reported once"
        assert one.bus.readings == 3
        assert one.has() == {"team-0", "team-1"}


async def test_gained_partitions_that_are_cached_do_not_wait_for_those_to_be_read(bus: Bus) -> None:
    async with teams(bus), replica(bus) as one:
        one.keep("team-0")
        await asyncio.wait_for(one.covered.wait(), 60)
        one.keep()
        one.gathered.clear()
        one.keep("team-0", "team-1")
        assert one.gains[1:] == [partitions("team-0")]
        one.gathered.set()
        await until(lambda: len(one.gains) == 3)
        assert one.gains[2] == partitions("team-1")


async def test_a_partition_that_returns_during_a_reading_waits_for_its_end(bus: Bus) -> None:
    """Another replica worked on it meanwhile: what is cached of it may be from before the connection was lost."""
    returned, newer = ObjectKey("team-1", "a"), obj("a", 6, uid="deployments-team-1", namespace="team-1")
    async with teams(bus) as publisher, replica(bus) as one:
        one.keep("team-0", "team-1")
        await asyncio.wait_for(one.covered.wait(), 60)
        versions: list[Version | None] = []
        one.reader.on_covered(lambda _: versions.append(one.cache.version(DEPLOYMENTS, returned)))
        one.bus.flows.clear()
        publisher.put(DEPLOYMENTS, newer)
        await publisher.flushed(DEPLOYMENTS)
        one.keep("team-0", "team-3")
        await until(lambda: one.bus.readings == 2)
        one.keep("team-0", "team-1", "team-3")
        assert not one.reader.covers(returned)
        assert one.reader.covers(ObjectKey("team-0", "a")), "no other replica worked on it"
        one.bus.flows.set()
        await asyncio.wait_for(one.covered.wait(), 60)
        assert versions == [version_of(newer)]
        assert one.gains[1:] == [partitions("team-1", "team-3")]
