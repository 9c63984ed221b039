"""Records in DynamoWorkerMetadata, and the workers' pods, from STATE."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_WORKER_METADATAS, ENDPOINT_SLICES, PODS, ObjectKey, Resource
from dynamo_shared.bus import Bus
from dynamo_shared.state import ObjectCache, StateReader

from dynamo_model_discovery.workers import metadata
from dynamo_model_discovery.workers.assembly import KUBERNETES, MAX_RECORDS_OF_NAMESPACE, SourcedRecord
from dynamo_model_discovery.workers.locations import POD_LABELS, WorkerLocation, by_address
from dynamo_model_discovery.workers.metadata import SLICE_LABELS

READS: tuple[Resource, ...] = (DYNAMO_WORKER_METADATAS, ENDPOINT_SLICES, PODS)
#: Fields that the cached objects get: the ready pods of an EndpointSlice (also the name of the index by pod), and the
#: parsed records of a DynamoWorkerMetadata.
_READY, _RECORDS = "ready", "records"
_METADATA = ("name", "namespace", "uid", "resourceVersion")
_POD_STATUS = ("phase", "podIP", "podIPs", "containerStatuses", "initContainerStatuses")


class KubernetesSource:
    """Caches the watcher's objects, and parses each object once."""

    name = KUBERNETES

    def __init__(self, bus: Bus, cluster: str, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._cache = ObjectCache()
        # The cache has only the fields that this source reads: users may write any amount of the others, and 1 MB of JSON
        # with small values takes 20 MB of memory.
        self._cache.keep_only(PODS, _pod)
        self._cache.keep_only(ENDPOINT_SLICES, _slice)
        self._cache.keep_only(DYNAMO_WORKER_METADATAS, self._parsed)
        self._cache.add_index(ENDPOINT_SLICES, _READY, lambda each: each[_READY])
        self._reader = StateReader(bus, cluster, READS, self._cache)
        self._places: Mapping[str, WorkerLocation] | None = None
        #: Number of records by namespace.
        self._counts: Counter[str] = Counter()
        self._cache.on_change(self._take)
        self._reader.on_resync(lambda _: changed())

    @property
    def ready(self) -> bool:
        """Whether all objects of the watcher have been read."""
        return all(self._reader.is_synced(resource) for resource in READS)

    @property
    def error(self) -> str:
        """Always empty: the bus reports when NATS is down, and the watcher reports when the API server is down."""
        return ""

    @property
    def unreadable(self) -> int:
        """Number of unreadable records."""
        return sum(each[_RECORDS].unreadable for each in self._cache.list(DYNAMO_WORKER_METADATAS))

    @property
    def locations(self) -> Mapping[str, WorkerLocation]:
        """Pods by address."""
        if self._places is None:
            self._places = by_address(self._cache.list(PODS))
        return self._places

    def records(self) -> Iterable[SourcedRecord]:
        """The records of pods that are ready."""
        for parsed, location in self._ready():
            for record in parsed.records:
                yield SourcedRecord(KUBERNETES, record, location)

    def unreadable_pods(self) -> Iterable[tuple[str, str]]:
        """Ready pods whose object has no readable record."""
        return [(location.namespace, location.pod) for parsed, location in self._ready() if not parsed.readable]

    async def run(self) -> None:
        """Read until cancelled."""
        await self._reader.run()

    def _ready(self) -> Iterable[tuple[metadata.MetadataRecords, WorkerLocation]]:
        for each in self._cache.list(DYNAMO_WORKER_METADATAS):
            if (location := metadata.location(each, self._pod_of, self._is_ready)) is not None:
                yield each[_RECORDS], location

    def _pod_of(self, key: ObjectKey) -> KubeObject | None:
        return self._cache.get(PODS, key)

    def _is_ready(self, pod: ObjectKey) -> bool:
        return bool(self._cache.keys_by_index(ENDPOINT_SLICES, _READY, str(pod)))

    def _parsed(self, each: KubeObject) -> KubeObject:
        """An object with its records; without them if its namespace already has more than are published.

        Any number of objects may name one ready pod, each with thousands of records. Records that were left out are read
        when their object changes.
        """
        full = self._counts[each["metadata"].get("namespace", "")] > MAX_RECORDS_OF_NAMESPACE
        records = metadata.MetadataRecords((), 0, readable=True) if full else metadata.read(each)
        owner = {"kind": PODS.kind, "name": metadata.owner_of(each)}
        kept = _only(_METADATA, each["metadata"]) | {"ownerReferences": [owner]}
        return {"metadata": kept, _RECORDS: records}

    def _take(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        if resource == DYNAMO_WORKER_METADATAS:
            self._counts[key.namespace] += _size(new) - _size(old)
            if not self._counts[key.namespace]:
                del self._counts[key.namespace]
        if _has_same_content(old, new):
            return
        if resource == PODS:
            self._places = None
        self._changed()


def _has_same_content(old: KubeObject | None, new: KubeObject | None) -> bool:
    """Whether an object changed only in fields that are not cached."""
    if old is None or new is None:
        return False
    version = {"resourceVersion": ""}
    return old | {"metadata": old["metadata"] | version} == new | {"metadata": new["metadata"] | version}


def _pod(pod: KubeObject) -> KubeObject:
    status = pod.get("status") or {}
    spec = {"hostNetwork": True} if pod.get("spec", {}).get("hostNetwork") else {}
    return {"metadata": _metadata(pod, POD_LABELS), "spec": spec, "status": _only(_POD_STATUS, status)}


def _slice(each: KubeObject) -> KubeObject:
    return {"metadata": _metadata(each, SLICE_LABELS), _READY: metadata.ready_pods(each)}


def _size(metadata: KubeObject | None) -> int:
    return len(metadata[_RECORDS].records) if metadata is not None else 0


def _metadata(obj: KubeObject, names: tuple[str, ...]) -> dict[str, Any]:
    metadata = obj["metadata"]
    return _only(_METADATA, metadata) | {"labels": _only(names, metadata.get("labels") or {})}


def _only(names: tuple[str, ...], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}
