"""STATE messages: how objects, deletions and ends of lists are encoded and decoded.

The payload is the object as JSON without `metadata.managedFields`; a tombstone's payload is empty. The headers identify
the object, so that a reader need not parse the payload first. If subject, headers and payload do not describe the same
object, the message is damaged, and a reader ignores it (`read`):

| header | value |
|---|---|
| `uid` | metadata.uid |
| `resourceVersion` | metadata.resourceVersion; in a tombstone, the version at which the object is known to be deleted |
| `generation` | metadata.generation; omitted if the object has none |
| `created` | metadata.creationTimestamp |
| `change` | `added`, `modified`, `deleted`, `synced` |
| `content-encoding` | `zlib` if the payload is compressed (RFC 1950), which objects above 128 KiB are; otherwise omitted |
| `traceparent` | the trace of the change, if known |
"""

import re
import zlib
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from dynamo_shared.api.objects import KubeObject, without_managed_fields
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.bus.protocol import Message
from dynamo_shared.state.versions import Version, resource_version

UID = "uid"
RESOURCE_VERSION = "resourceVersion"
GENERATION = "generation"
CREATED = "created"
CHANGE = "change"
ENCODING = "content-encoding"
ZLIB = "zlib"

COMPRESSED_ABOVE = 128 << 10
"""Bytes. Compressing smaller objects is not worth the time."""

LARGEST_OBJECT = 8 << 20
"""Bytes of an object as JSON. The API server stores up to 1.5 MiB, and built-in kinds in a shorter form than JSON."""


class ChangeType(StrEnum):
    """Why a STATE message was written."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    SYNCED = "synced"


class SyncedMarker(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """States that STATE has all objects of a resource, as of one list."""

    resource: str
    resource_version: str
    count: int
    time: str
    served: bool = True
    """Whether the cluster serves the resource; if not, it has no objects of it."""


_DIGITS = 19
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)
_SHAPES: tuple[tuple[str, type], ...] = (
    ("labels", dict),
    ("annotations", dict),
    ("ownerReferences", list),
    ("finalizers", list),
)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def encode_object(obj: KubeObject) -> bytes:
    """An object as JSON for a STATE message."""
    return _encode(without_managed_fields(obj))


def pack(payload: bytes) -> tuple[bytes, dict[str, str]]:
    """The payload and the additional headers of an encoded object. Large payloads are compressed."""
    if len(payload) <= COMPRESSED_ABOVE:
        return payload, {}
    return zlib.compress(payload, 1), {ENCODING: ZLIB}


def decode_object(payload: bytes, headers: Mapping[str, str] = MappingProxyType({})) -> KubeObject:
    """The object of a STATE message, not of a tombstone. msgspec.DecodeError (a ValueError) if it is invalid."""
    try:
        return _decode(unpack(payload, headers))
    except RecursionError as error:
        raise msgspec.DecodeError("nested too deeply") from error


def unpack(payload: bytes, headers: Mapping[str, str]) -> bytes:
    """The JSON of an object, the inverse of `pack`. msgspec.DecodeError (a ValueError) if it cannot be decoded."""
    encoding = headers.get(ENCODING, "")
    if not encoding:
        return payload
    if encoding != ZLIB:
        raise msgspec.DecodeError(f"{ENCODING} {encoding[:20]!r} is not supported; it must be {ZLIB}")
    return _unpacked(payload)


def _unpacked(payload: bytes) -> bytes:
    """Decompress up to the size limit of an object: a small payload may expand to a very large one."""
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(payload, LARGEST_OBJECT)
    except zlib.error as error:
        raise msgspec.DecodeError(f"payload cannot be decompressed: {error}") from error
    if not decompressor.eof:
        raise msgspec.DecodeError(f"payload is truncated, or larger than {LARGEST_OBJECT} bytes")
    return content


class StateEntry(NamedTuple):
    """Content of a message: a version of an object, or None as the object for its deletion."""

    version: Version
    obj: KubeObject | None


def read(resource: Resource, key: ObjectKey, message: Message) -> StateEntry:
    """Decode a message about an object. ValueError, with the reason, if subject, headers and payload disagree."""
    return StateEntry(read_version(message.headers), read_object(resource, key, message))


def read_version(headers: Mapping[str, str]) -> Version:
    """The version in a message's headers. ValueError if a header is missing or invalid."""
    uid, number, created = headers.get(UID, ""), headers.get(RESOURCE_VERSION, ""), headers.get(CREATED, "")
    if not uid:
        raise ValueError("header uid is missing")
    # 19 digits suffice for 64 bits. Python would convert thousands of digits in a time that grows with their square.
    if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
        raise ValueError("header resourceVersion is not a 64-bit number")
    if created and not _TIME.fullmatch(created):
        raise ValueError("header created is not an RFC 3339 time in UTC")
    return Version(uid, int(number), created)


def read_object(resource: Resource, key: ObjectKey, message: Message) -> KubeObject | None:
    """The object of a message, None for a deletion. ValueError if subject, headers and payload disagree."""
    headers = message.headers
    change = headers.get(CHANGE)
    if change == ChangeType.DELETED:
        if message.payload:
            raise ValueError("tombstone has a payload")
        return None
    if change not in (ChangeType.ADDED, ChangeType.MODIFIED):
        raise ValueError("header change is not added, modified or deleted")
    obj = decode_object(message.payload, headers)
    _check_matches(obj, resource, key, headers)
    return obj


def _check_matches(obj: KubeObject, resource: Resource, key: ObjectKey, headers: Mapping[str, str]) -> None:
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    if (obj.get("apiVersion"), obj.get("kind")) != (resource.api_version, resource.kind):
        raise ValueError("apiVersion or kind of the payload does not match the subject")
    if (metadata.get("namespace", ""), metadata.get("name")) != key:
        raise ValueError("name or namespace of the payload does not match the subject")
    generation = metadata.get("generation")
    for header, value in (
        (UID, metadata.get("uid")),
        (RESOURCE_VERSION, metadata.get("resourceVersion")),
        (CREATED, metadata.get("creationTimestamp") or ""),
        (GENERATION, str(generation) if generation is not None else ""),
    ):
        if headers.get(header, "") != value:
            raise ValueError(f"header {header} does not match the payload")
    for name, kind in _SHAPES:
        if name in metadata and not isinstance(metadata[name], kind):
            raise ValueError(f"metadata.{name} is not a {kind.__name__}")
    for name in ("spec", "status"):
        if name in obj and not isinstance(obj[name], dict):
            raise ValueError(f"{name} is not a dict")


def object_headers(obj: KubeObject, change: ChangeType) -> dict[str, str]:
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
        CHANGE: ChangeType.DELETED.value,
    }


def version_in(headers: Mapping[str, str]) -> Version:
    """Version in a message's headers, not validated."""
    return Version(headers.get(UID, ""), resource_version(headers.get(RESOURCE_VERSION)), headers.get(CREATED, ""))


def is_tombstone(headers: Mapping[str, str]) -> bool:
    """Whether a message reports a deletion."""
    return headers.get(CHANGE) == ChangeType.DELETED.value


def synced_headers(marker: SyncedMarker) -> dict[str, str]:
    """Headers of a marker."""
    return {RESOURCE_VERSION: marker.resource_version, CHANGE: ChangeType.SYNCED.value}


decode_marker = msgspec.json.Decoder(SyncedMarker).decode
"""Decodes a marker; msgspec.DecodeError (a ValueError) if the payload is not a marker."""
encode_marker = msgspec.json.Encoder().encode
"""Encodes a marker."""
