"""STATE messages: how an object, its deletion and the end of a list are written, and read back.

The payload is the object as JSON without `metadata.managedFields`; a tombstone's payload is empty. What a reader needs
to decide whether it wants the object stands in the headers, so that it need not parse the payload first:

| header | value |
|---|---|
| `uid` | metadata.uid |
| `resourceVersion` | metadata.resourceVersion; of a tombstone, the version at which the object is known to be gone |
| `generation` | metadata.generation, left out where the object has none |
| `created` | metadata.creationTimestamp |
| `change` | `added`, `modified`, `deleted`, `synced` |
| `traceparent` | the trace that the change belongs to, where it is known |
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus.versions import Version, resource_version

UID = "uid"
RESOURCE_VERSION = "resourceVersion"
GENERATION = "generation"
CREATED = "created"
CHANGE = "change"


class Change(StrEnum):
    """Why a STATE message was written."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    SYNCED = "synced"


class SyncedMarker(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Says that STATE has all objects of a resource, as of a list of it."""

    resource: str
    resource_version: str
    count: int
    time: str
    served: bool = True
    """Whether the cluster has the resource at all; it has none of what is not installed."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def encode_object(obj: KubeObject) -> bytes:
    """An object as STATE carries it."""
    metadata = obj["metadata"]
    if "managedFields" in metadata:
        kept = {name: value for name, value in metadata.items() if name != "managedFields"}
        obj = {**obj, "metadata": kept}
    return _encode(obj)


def decode_object(payload: bytes) -> KubeObject:
    """The object of a STATE message that is no tombstone; msgspec.DecodeError (a ValueError) where it is none."""
    try:
        return _decode(payload)
    except RecursionError as error:
        raise msgspec.DecodeError("nested too deeply") from error


def object_headers(obj: KubeObject, change: Change) -> dict[str, str]:
    """Headers of an object's message."""
    metadata = obj["metadata"]
    headers = {
        UID: metadata.get("uid", ""),
        RESOURCE_VERSION: metadata.get("resourceVersion", ""),
        CREATED: metadata.get("creationTimestamp") or "",
        CHANGE: change.value,
    }
    generation = metadata.get("generation")
    if generation is not None:
        headers[GENERATION] = str(generation)
    return headers


def tombstone_headers(version: Version) -> dict[str, str]:
    """Headers of a tombstone."""
    return {
        UID: version.uid,
        RESOURCE_VERSION: str(version.resource_version),
        CREATED: version.created,
        CHANGE: Change.DELETED.value,
    }


def version_in(headers: Mapping[str, str]) -> Version:
    """Version of the object that a message is about."""
    return Version(headers.get(UID, ""), resource_version(headers.get(RESOURCE_VERSION)), headers.get(CREATED, ""))


def is_tombstone(headers: Mapping[str, str]) -> bool:
    """Whether a message says that its object is gone."""
    return headers.get(CHANGE) == Change.DELETED.value


def synced_headers(marker: SyncedMarker) -> dict[str, str]:
    """Headers of a marker."""
    return {RESOURCE_VERSION: marker.resource_version, CHANGE: Change.SYNCED.value}


_decode_marker = msgspec.json.Decoder(SyncedMarker).decode


def decode_marker(payload: bytes) -> SyncedMarker:
    """The marker of a message; msgspec.DecodeError (a ValueError) where it is none."""
    return _decode_marker(payload)


def encode_marker(marker: SyncedMarker) -> bytes:
    """A marker as STATE carries it."""
    return _encode(marker)
