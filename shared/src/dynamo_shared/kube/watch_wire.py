"""Decodes lists and watches from the wire, only as far as necessary.

A list page keeps its items as raw JSON, so that a relist reads the metadata of known objects and decodes only changed
objects. A watch is split into lines, independently of its chunks. Decoders raise Unavailable for content that no API
server sends: a gateway has answered instead.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.kube.depth import Content, bounded
from dynamo_shared.kube.errors import Unavailable

# etcd refuses objects above 1.5 MiB (3 MiB as JSON with managedFields); a longer line is not a watch event.
MAX_LINE_BYTES = 16 * 2**20

# A bookmark has only a resourceVersion.
BOOKMARK = "BOOKMARK"
ERROR = "ERROR"

T = TypeVar("T")


class WatchEvent(msgspec.Struct):
    """One line of a watch."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: KubeObject


class EventMeta(msgspec.Struct, rename="camel"):
    """The metadata of an event's object. A bookmark has no name."""

    resource_version: Annotated[str, msgspec.Meta(min_length=1)]
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _ListMeta(msgspec.Struct, rename="camel"):
    # Every list has one. A Status with a success code has none, and would count as an empty list.
    resource_version: Annotated[str, msgspec.Meta(min_length=1)]
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct):
    """One page of a list; `items` is null for an empty list of some resources."""

    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class ItemMeta(msgspec.Struct, rename="camel"):
    """The metadata that identifies a version of an object."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Item(msgspec.Struct):
    metadata: ItemMeta


def _checked(what: str, decode: Callable[[Any], T]) -> Callable[[Content], T]:
    decode = bounded(decode)

    def checked(content: Content) -> T:
        try:
            return decode(content)
        except msgspec.DecodeError as error:
            raise garbled(f"cannot decode {what}: {error}") from error

    return checked


def garbled(message: str) -> Unavailable:
    """The error for an answer that no API server sends."""
    return Unavailable(0, "Garbled", message)


decode_page = _checked("list", msgspec.json.Decoder(ListPage).decode)
_decode_item = _checked("item of a list", msgspec.json.Decoder(_Item).decode)
decode_object = _checked("object", msgspec.json.Decoder(dict[str, Any]).decode)
decode_event = _checked("watch event", msgspec.json.Decoder(WatchEvent).decode)


def event_meta(event: WatchEvent) -> EventMeta:
    """Metadata of an event's object."""
    try:
        meta = msgspec.convert(event.object.get("metadata"), EventMeta)
    except msgspec.ValidationError as error:
        raise garbled(f"watch event has no metadata: {error}") from error
    if not (meta.name or event.type == BOOKMARK):
        raise garbled("watch event names no object")
    return meta


def item_meta(item: msgspec.Raw) -> ItemMeta:
    """Metadata of a list item."""
    return _decode_item(item).metadata


class Lines:
    """Splits a byte stream into lines. Keeps an incomplete line, up to a limit."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that `chunk` completes, without empty ones. Raises Unavailable if one is longer than any event."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return
        lines = chunk.split(b"\n")
        if self._rest:
            self._rest += lines[0]
            lines[0] = bytes(self._rest)
            self._rest.clear()
        self._keep(lines.pop())
        for line in lines:
            if line:
                yield line

    def _keep(self, rest: bytes) -> None:
        self._rest += rest
        if len(self._rest) > MAX_LINE_BYTES:
            raise garbled(f"watch event is longer than {MAX_LINE_BYTES} bytes")
