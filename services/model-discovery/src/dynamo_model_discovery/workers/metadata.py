"""DynamoWorkerMetadata: the records of a pod, which count while the pod is ready. Pure.

The rules are the same as in the reference's discovery daemon: a pod counts while an EndpointSlice with the discovery
label reports it ready. If each container is a separate worker (`DYN_KUBE_DISCOVERY_MODE=container`, with the object
name `<pod>-<container>`), a worker counts while its container is ready. If the data is temporarily null or unreadable,
a ready worker does not leave.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import container_statuses
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.api.untrusted import json_text

from dynamo_model_discovery.workers.locations import WorkerLocation, location_of
from dynamo_model_discovery.workers.records import Record, UnreadableError, endpoint, identity_of, model

#: Limit of the records of one kind in one object. A process has a few endpoints, and a card for each adapter.
MAX_RECORDS = 1000
#: Labels of the EndpointSlices that this module reads.
SLICE_LABELS = (labels.DISCOVERY_ENABLED,)


class MetadataRecords(NamedTuple):
    """The records of one object. `unreadable` is the number of others; `readable` is false if no record can be read."""

    records: tuple[Record, ...]
    unreadable: int
    readable: bool


def read(metadata: KubeObject) -> MetadataRecords:
    """The records of an object; they count only while its pod is ready."""
    data = (metadata.get("spec") or {}).get("data")
    if isinstance(data, str):
        try:
            data = json_text.decode(data)
        except json_text.InvalidJson:
            data = None
    if not isinstance(data, dict):
        return MetadataRecords((), 1, False)
    records: list[Record] = []
    unreadable = 0
    for _, content in _entries(data.get("endpoints")):
        try:
            records.append(endpoint(content, identity_of(content)))
        except UnreadableError:
            unreadable += 1
    for key, content in _entries(data.get("model_cards")):
        try:
            record = model(content, identity_of(content), _suffix(key))
        except UnreadableError:
            unreadable += 1
            continue
        unreadable += record.card is None
        records.append(record)
    return MetadataRecords(tuple(records), unreadable, readable=True)


def owner_of(metadata: KubeObject) -> str:
    """Name of the pod of an object: its owner, otherwise the object's own name."""
    owners = metadata["metadata"].get("ownerReferences") or ()
    return next((owner["name"] for owner in owners if owner.get("kind") == "Pod" and owner.get("name")), "") or str(
        metadata["metadata"]["name"]
    )


def ready_pods(each: KubeObject) -> set[str]:
    """The ready pods of an EndpointSlice with the discovery label, as `namespace/name`."""
    metadata = each["metadata"]
    if (metadata.get("labels") or {}).get(labels.DISCOVERY_ENABLED) != "true":
        return set()
    return {
        str(ObjectKey(metadata.get("namespace", ""), name))
        for entry in each.get("endpoints") or ()
        if (entry.get("conditions") or {}).get("ready") and (name := (entry.get("targetRef") or {}).get("name"))
    }


def location(
    metadata: KubeObject, pod_of: Callable[[ObjectKey], KubeObject | None], is_ready: Callable[[ObjectKey], bool]
) -> WorkerLocation | None:
    """The location of the object's worker; None while it is not ready."""
    name, namespace = metadata["metadata"]["name"], metadata["metadata"].get("namespace", "")
    owner = owner_of(metadata)
    key = ObjectKey(namespace, owner)
    pod = pod_of(key)
    container = name.removeprefix(f"{owner}-") if name != owner and name.startswith(f"{owner}-") else ""
    if container:
        if pod is None or not _container_is_ready(pod, container):
            return None
    elif not is_ready(key):
        return None
    return location_of(pod, container) if pod is not None else WorkerLocation(namespace, owner)


def _container_is_ready(pod: KubeObject, container: str) -> bool:
    return any(each.get("name") == container and each.get("ready") for each in container_statuses(pod))


def _entries(table: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(table, dict):
        for key, content in list(table.items())[:MAX_RECORDS]:
            yield key, content if isinstance(content, dict) else {}


def _suffix(key: str) -> str:
    """The adapter in `<namespace>/<component>/<endpoint>/<id>/<adapter>`; empty for shorter keys."""
    parts = key.split("/")
    return parts[4] if len(parts) == 5 else ""
