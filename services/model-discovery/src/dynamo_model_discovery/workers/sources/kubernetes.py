"""Records in DynamoWorkerMetadata, and the pods that workers are, from STATE."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_WORKER_METADATAS, ENDPOINT_SLICES, PODS, ObjectKey, Resource
from dynamo_shared.bus import Bus, ObjectCache, StateReader

from dynamo_model_discovery.workers import metadata
from dynamo_model_discovery.workers.assembly import KUBERNETES, SourcedRecord
from dynamo_model_discovery.workers.places import WorkerLocation, by_address

READS: tuple[Resource, ...] = (DYNAMO_WORKER_METADATAS, ENDPOINT_SLICES, PODS)
#: Of a pod's status; the rest of it and its spec would be most of what is held.
_POD_STATUS = ("phase", "podIP", "podIPs", "containerStatuses", "initContainerStatuses")


class KubernetesSource:
    """Keeps what the watcher publishes, and parses each object once."""

    name = KUBERNETES

    def __init__(self, bus: Bus, cluster: str, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._cache = ObjectCache()
        self._cache.keep_only(PODS, _pod)
        self._reader = StateReader(bus, cluster, READS, self._cache)
        self._by_object: dict[ObjectKey, metadata.MetadataRecords] = {}
        self._places: Mapping[str, WorkerLocation] | None = None
        self._cache.on_change(self._take)
        self._reader.on_resync(lambda _: changed())

    @property
    def ready(self) -> bool:
        """Whether the watcher has published all of it."""
        return all(self._reader.is_synced(resource) for resource in READS)

    @property
    def trouble(self) -> str:
        """None of its own: the bus says when it is away, and the watcher when the API server is."""
        return ""

    @property
    def unreadable(self) -> int:
        """Records that cannot be read."""
        return sum(parsed.unreadable for parsed in self._by_object.values())

    @property
    def places(self) -> Mapping[str, WorkerLocation]:
        """Pods by address."""
        if self._places is None:
            self._places = by_address(self._cache.list(PODS))
        return self._places

    def records(self) -> Iterable[SourcedRecord]:
        """The records of pods that are ready."""
        for parsed, place in self._ready():
            for record in parsed.records:
                yield SourcedRecord(KUBERNETES, record, place)

    def unreadable_pods(self) -> Iterable[tuple[str, str]]:
        """Ready pods whose object says nothing that can be read."""
        return [(place.namespace, place.pod) for parsed, place in self._ready() if not parsed.readable]

    async def run(self) -> None:
        """Read until cancelled."""
        await self._reader.run()

    def _ready(self) -> Iterable[tuple[metadata.MetadataRecords, WorkerLocation]]:
        ready = metadata.ready_pods(self._cache.list(ENDPOINT_SLICES))
        for key, parsed in self._by_object.items():
            obj = self._cache.get(DYNAMO_WORKER_METADATAS, key)
            place = metadata.place(obj, self._pod_of, ready) if obj is not None else None
            if place is not None:
                yield parsed, place

    def _pod_of(self, key: ObjectKey) -> KubeObject | None:
        return self._cache.get(PODS, key)

    def _take(self, resource: Resource, key: ObjectKey, _old: KubeObject | None, new: KubeObject | None) -> None:
        if resource == PODS:
            self._places = None
        elif resource == DYNAMO_WORKER_METADATAS:
            if new is None:
                self._by_object.pop(key, None)
            else:
                self._by_object[key] = metadata.read(new)
        self._changed()


def _pod(pod: KubeObject) -> KubeObject:
    status = pod.get("status") or {}
    kept = {name: status[name] for name in _POD_STATUS if name in status}
    spec = {"hostNetwork": True} if pod.get("spec", {}).get("hostNetwork") else {}
    return {"metadata": pod["metadata"], "spec": spec, "status": kept}
