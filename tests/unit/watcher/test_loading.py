"""What a new watcher publishes while it still reads STATE."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import PropertyMock, patch

from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey, Resource
from dynamo_shared.bus import streams
from dynamo_shared.bus.protocol import ACK_TIMEOUT, Ack, OutgoingMessage
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.state import messages
from dynamo_shared.wire import subjects
from dynamo_watcher.resources import Watched
from hypothesis import given
from hypothesis import strategies as st

from tests.building.memory_bus import MemoryBus
from tests.building.memory_bus.bus import MemorySubscription
from tests.building.waiting import turns, until
from tests.unit.watcher.feeding import CLUSTER, Cluster, feeding

KINDS = (DYNAMO_GRAPH_DEPLOYMENTS, DEPLOYMENTS)
WATCHED = tuple(map(Watched, KINDS))


def subject(resource: Resource, name: str) -> str:
    return subjects.state_subject(CLUSTER, resource.id, ObjectKey("ns", name))


class Recording(MemoryBus):
    """Records what STATE accepted, by subject. Some resources of it can be read only once `reading` is set."""

    def __init__(self, *slow: Resource) -> None:
        super().__init__()
        self.taken: dict[str, list[tuple[int, bool]]] = {}
        """versions, and whether each is that of an object or of its end"""
        self.reading = asyncio.Event()
        self._slow = {subjects.state_filter(CLUSTER, each.id) for each in slow}

    async def send(self, message: OutgoingMessage, *, timeout: float = ACK_TIMEOUT) -> asyncio.Future[Ack]:
        future = await super().send(message, timeout=timeout)
        if future.exception() is None and subjects.parse_synced(message.subject) is None:
            version = messages.version_in(message.headers or {}).resource_version
            self.taken.setdefault(message.subject, []).append((version, bool(message.payload)))
        return future

    async def subscribe(self, stream: StreamSpec, filters: Sequence[str], **options: Any) -> MemorySubscription:
        if self._slow & set(filters):
            await self.reading.wait()
        return await super().subscribe(stream, filters, **options)

    async def objects(self) -> dict[str, Any]:
        """The objects in STATE, without tombstones."""
        last = [await self.last_message(streams.STATE, each) for each in self.taken]
        return {each.subject: json.loads(each.payload) for each in last if each is not None and each.payload}


async def test_a_changed_graph_does_not_wait_until_all_of_state_is_read() -> None:
    bus, cluster = Recording(DEPLOYMENTS), Cluster()
    cluster.put(DYNAMO_GRAPH_DEPLOYMENTS, "g")
    cluster.put(DEPLOYMENTS, "d")
    async with feeding(bus, cluster, watched=WATCHED) as feed:
        await until(lambda: subject(DYNAMO_GRAPH_DEPLOYMENTS, "g") in bus.taken)
        cluster.put(DYNAMO_GRAPH_DEPLOYMENTS, "g")
        await until(lambda: bus.taken[subject(DYNAMO_GRAPH_DEPLOYMENTS, "g")] == [(101, True), (103, True)])
        # A part that is not read yet is neither published nor reported as missing, not even by a check.
        await feed._publisher._audit.scan()
        assert not feed._publisher.lost.is_set()
        assert subject(DEPLOYMENTS, "d") not in bus.taken
        bus.reading.set()
        await until(lambda: bus.taken.get(subject(DEPLOYMENTS, "d")) == [(102, True)])


NAMES = st.sampled_from("abc")
PLACES = st.tuples(st.sampled_from(KINDS), NAMES)
CHANGES = st.lists(st.tuples(PLACES, st.sampled_from(["put", "delete", "forge"]), st.integers(0, 12)), max_size=8)


async def _change(
    bus: MemoryBus, cluster: Cluster, changes: Iterable[tuple[tuple[Resource, str], str, int]], *, forge: bool
) -> None:
    for (resource, name), what, pause in changes:
        is_there = ObjectKey("ns", name) in cluster.objects.get(resource, {})
        if what == "put":
            cluster.put(resource, name)
        elif what == "delete" and is_there:
            cluster.delete(resource, name)
        elif what == "forge" and forge and is_there:
            last = await bus.last_message(streams.STATE, subject(resource, name))
            if last is not None and last.payload:
                await bus.publish(last.subject, b"{}", headers=last.headers)
        await turns(pause)


async def _outcome(before: Any, between: Any, meanwhile: Any) -> dict[str, Any]:
    """STATE after one watcher replaced another, whatever happened before, in between and while it read STATE."""
    bus, cluster = Recording(), Cluster()
    cluster.objects = {each: {} for each in KINDS}
    bus.reading.set()

    async def lookup(watched: Watched, key: ObjectKey) -> Any:
        return cluster.objects[watched.resource].get(key)

    def desired() -> dict[str, Any]:
        return {subject(kind, key.name): obj for kind in KINDS for key, obj in cluster.objects[kind].items()}

    async def settled() -> None:
        async with asyncio.timeout(60):
            while await bus.objects() != desired():
                await asyncio.sleep(0.001)

    async with feeding(bus, cluster, watched=WATCHED, lookup=lookup):
        await _change(bus, cluster, before, forge=False)
        await settled()
    cluster.listeners.clear()
    await _change(bus, cluster, between, forge=True)
    known = await bus.objects()
    held = {each: (int(obj["metadata"]["resourceVersion"]) if obj else 0, True) for each, obj in known.items()}
    bus.taken = {each: [] for each in bus.taken}
    async with feeding(bus, cluster, watched=WATCHED, lookup=lookup):
        await _change(bus, cluster, meanwhile, forge=False)
        await settled()
    for where, taken in bus.taken.items():
        said = [held.get(where, (0, False)), *taken]
        # Each version of an object once, in order, and none that STATE already had.
        versions = [version for version, is_there in said if is_there]
        assert versions == sorted(set(versions)), (where, said)
        # A deletion follows its object, with at least the object's version.
        assert all(is_there or (before[1] and version >= before[0]) for before, (version, is_there) in pairwise(said))
    return await bus.objects()


@given(CHANGES, CHANGES, CHANGES)
def test_state_is_the_same_whether_or_not_a_part_is_read_before_the_rest(
    before: Any, between: Any, meanwhile: Any
) -> None:
    in_parts = asyncio.run(_outcome(before, between, meanwhile))
    with patch.object(Watched, "is_early", PropertyMock(return_value=False)):
        assert asyncio.run(_outcome(before, between, meanwhile)) == in_parts
