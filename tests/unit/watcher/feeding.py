"""A watcher's feed without servers: the messages of an API server, and the feed that publishes them to STATE."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from dynamo_shared.api.resources import DEPLOYMENTS, SERVICES, ObjectKey, Resource
from dynamo_shared.kube.reflector import Absent, ObjectChange, Synced
from dynamo_watcher.feed import Feed
from dynamo_watcher.follower import Item
from dynamo_watcher.metrics import WatcherMetrics
from dynamo_watcher.resources import Watched
from prometheus_client import CollectorRegistry

from tests.building.memory_bus import MemoryBus
from tests.building.objects import object_of
from tests.building.tasks import in_background

CLUSTER = "c"


class Cluster:
    """The lists and watch events of an API server."""

    def __init__(self) -> None:
        self.objects: dict[Resource, dict[ObjectKey, dict[str, Any]]] = {}
        self.version = 100
        self.listeners: list[tuple[Resource, str, asyncio.Queue[ObjectChange]]] = []
        self.lists = 0
        self.absent: set[Resource] = set()
        self.served: dict[Resource, bool] = {}
        #: Lists of these namespaces wait.
        self.waiting: dict[str, asyncio.Event] = {}
        self.health: Callable[[bool, str], None] = lambda _ok, _message: None

    def put(self, resource: Resource, name: str, namespace: str = "ns") -> None:
        self.version += 1
        key = ObjectKey(namespace, name)
        table = self.objects.setdefault(resource, {})
        kind: Literal["MODIFIED", "ADDED"] = "MODIFIED" if key in table else "ADDED"
        table[key] = object_of(
            resource,
            name,
            namespace,
            uid=f"{resource.id}-{name}",
            resourceVersion=str(self.version),
            creationTimestamp="2026-01-01T00:00:00Z",
        )
        self.report(resource, ObjectChange(kind, key, table[key], 1.0))

    def delete(self, resource: Resource, name: str) -> None:
        self.version += 1
        key = ObjectKey("ns", name)
        gone = self.objects[resource].pop(key)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self.report(resource, ObjectChange("DELETED", key, gone, 1.0))

    def report(self, resource: Resource, change: ObjectChange) -> None:
        for desired, namespace, queue in self.listeners:
            if desired == resource and namespace in ("", change.key.namespace):
                queue.put_nowait(change)

    async def source(
        self, watched: Watched, namespace: str, on_health: Callable[[bool, str], None], served: bool
    ) -> AsyncGenerator[Item, None]:
        if namespace in self.waiting:
            await self.waiting[namespace].wait()
        self.lists += 1
        self.served[watched.resource] = served
        # Like the API server: a resource without namespaces has the same objects in each.
        namespace = namespace if watched.resource.namespaced else ""
        while watched.resource in self.absent:
            yield Absent()
            await asyncio.sleep(0)
        self.health = on_health
        queue: asyncio.Queue[ObjectChange] = asyncio.Queue()
        self.listeners.append((watched.resource, namespace, queue))
        results = {
            key: obj for key, obj in self.objects.get(watched.resource, {}).items() if namespace in ("", key.namespace)
        }
        for key, obj in results.items():
            yield ObjectChange("ADDED", key, obj, 1.0, listed=True)
        versions = {key: (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]) for key, obj in results.items()}
        yield Synced(str(self.version), versions)
        while True:
            yield await queue.get()


@asynccontextmanager
async def feeding(bus: MemoryBus, cluster: Cluster, **options: Any) -> AsyncIterator[Feed]:
    watched = options.pop("watched", (Watched(DEPLOYMENTS), Watched(SERVICES)))
    feed = Feed(cluster.source, bus, CLUSTER, watched, WatcherMetrics(CollectorRegistry()), **options)
    async with in_background(feed.run()):
        yield feed
