"""The active watcher: all resources, one publisher, and what happens when STATE is lost."""

import asyncio
from collections.abc import Callable, Sequence

import structlog
from dynamo_shared.aio import either, endless
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.bus import Bus, EventPublisher, streams
from dynamo_shared.state.publisher import StatePublisher
from dynamo_shared.wire.specifications.platform import PLATFORM, ResyncData

from dynamo_watcher.follower import Follower, Lookup, Source
from dynamo_watcher.metrics import WatcherMetrics
from dynamo_watcher.resources import Watched

log = structlog.get_logger("dynamo.watcher")

COUNT_INTERVAL = 5.0
"""Seconds between counts of the objects in STATE, for the metric."""

FLUSH_WITHIN = 2.0


class Feed:
    """Keeps STATE equal to the watched resources of the API server. Run it while this replica is the leader.

    1. It reads a resource's objects from STATE, lists the resource, and publishes differences, and tombstones for
       deleted objects. Objects that users change come first: their changes do not wait for the rest
       (`Watched.is_early`).
    2. It follows every resource.
    3. It corrects messages of other publishers in STATE from the API server (`StatePublisher`).
    4. If STATE has lost messages, it starts over, then reports that with a `resync` event.
    """

    def __init__(
        self,
        source: Source,
        bus: Bus,
        cluster: str,
        watched: Sequence[Watched],
        metrics: WatcherMetrics,
        *,
        lookup: Lookup | None = None,
        namespaces: Sequence[str] = (),
        trouble: Callable[[str, str], None] = lambda _resource, _message: None,
        too_large: Callable[[KubeObject, str], None] = lambda _obj, _message: None,
    ) -> None:
        self._source = source
        self._cluster = cluster
        self._watched = watched
        self._metrics = metrics
        self._namespaces = namespaces
        self._trouble = trouble
        self._lookup = lookup
        self._publisher = StatePublisher(
            bus, cluster, declares=streams.ALL, truth=self._truth if lookup is not None else None
        )
        self._publisher.on_too_large(too_large)
        self._publisher.on_refused(lambda words: trouble("STATE", words))
        self._publisher.on_stalled(lambda words: trouble(streams.STATE.name, words))
        self._events = EventPublisher(bus, cluster)
        self._rounds = 0

    async def run(self) -> None:
        """Feed until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(endless(self._publisher.run()), name="state-publisher")
                tasks.create_task(endless(self._events.run()), name="event-publisher")
                while True:
                    await self._until_lost()
                    log.warning("publishing all objects again")
                    self._publisher.start_over()
                    self._rounds += 1
        finally:
            await self._events.flush(FLUSH_WITHIN)

    async def _until_lost(self) -> None:
        await either(self._follow(), self._publisher.lost.wait())

    async def _follow(self) -> None:
        """Follow all resources. An error of a follower ends the feed, and the service restarts."""
        followers = [self._follower(entry) for entry in self._watched]
        async with asyncio.TaskGroup() as tasks:
            # This must come first: an unread message would look like another publisher's message.
            tasks.create_task(self._load(followers), name="load")
            for follower in followers:
                tasks.create_task(follower.run(), name="follower")
            tasks.create_task(self._announce(followers), name="announce")
            tasks.create_task(self._count(followers), name="object-count")

    async def _load(self, followers: Sequence[Follower]) -> None:
        """Read STATE; follow each resource as soon as it has been read."""
        by_resource = {follower.watched.resource: follower for follower in followers}
        early, late = ([entry.resource for entry in self._watched if entry.is_early is each] for each in (True, False))
        await self._publisher.load(early, late, loaded=lambda resource: by_resource[resource].loaded.set())

    async def _truth(self, resource: Resource, key: ObjectKey) -> KubeObject | None:
        """The desired content of an object in STATE. KubeError if the API server does not answer."""
        watched = next((entry for entry in self._watched if entry.resource == resource), None)
        if self._lookup is None or watched is None:
            return None
        namespaces = self._namespaces_of(resource)
        if namespaces and key.namespace not in namespaces:
            return None
        obj = await self._lookup(watched, key)
        return watched.trimmed(obj) if obj is not None else None

    def _follower(self, entry: Watched) -> Follower:
        namespaces = self._namespaces_of(entry.resource)
        return Follower(
            entry, self._source, self._publisher, self._metrics, namespaces=namespaces, trouble=self._trouble
        )

    def _namespaces_of(self, resource: Resource) -> Sequence[str]:
        """The namespaces in which a resource is watched; empty for all, and for cluster-scoped resources."""
        return self._namespaces if resource.namespaced else ()

    async def _announce(self, followers: Sequence[Follower]) -> None:
        for follower in followers:
            await follower.synced.wait()
        log.info("all resources are in STATE", objects={f.watched.resource.id: self._count_of(f) for f in followers})
        if self._rounds:
            self._events.publish(kind=PLATFORM, obj=self._platform(), event="resync", data=self._resync(followers))

    def _count_of(self, follower: Follower) -> int:
        return self._publisher.count(follower.watched.resource)

    def _platform(self) -> dict[str, object]:
        """The platform as the object of a resync event; each incarnation of STATE is another version of it."""
        version = f"{self._publisher.incarnation}-{self._rounds}"
        return {"metadata": {"name": self._cluster, "uid": self._cluster, "resourceVersion": version}}

    def _resync(self, followers: Sequence[Follower]) -> ResyncData:
        resources = [follower.watched.resource.id for follower in followers]
        return ResyncData(reason="STATE was lost and has been published again", resources=resources)

    async def _count(self, followers: Sequence[Follower]) -> None:
        while True:
            for follower in followers:
                if follower.loaded.is_set():
                    self._metrics.objects.labels(follower.watched.resource.id).set(self._count_of(follower))
            await asyncio.sleep(COUNT_INTERVAL)
