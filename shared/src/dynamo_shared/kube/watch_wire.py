"""What lists and watches look like on the wire, decoded no further than needed.

A list page keeps its items as raw JSON, so that a relist reads the metadata of known objects and decodes
only what changed; a watch is cut into lines whatever the chunks that it comes in. Decoders raise Unavailable for what is
not what an API server sends: a gateway has answered in its place.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeVar

import msgspec

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.kube.depth import Content, bounded
from dynamo_shared.kube.errors import Unavailable

# etcd refuses objects above 1.5 MiB (3 MiB as JSON with managedFields); a longer line is not a watch event.
MAX_LINE_BYTES = 16 * 2**20

# Bookmarks carry nothing but a resourceVersion.
BOOKMARK = "BOOKMARK"
ERROR = "ERROR"

T = TypeVar("T")


class WatchEvent(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: KubeObject


class _ListMeta(msgspec.Struct, rename="camel"):
    # Every list has one. A Status with the code of success has none, and would be a list of nothing.
    resource_version: Annotated[str, msgspec.Meta(min_length=1)]
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct):
    """One page of a list; `items` is null for an empty list of some resources."""

    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class ItemMeta(msgspec.Struct, rename="camel"):
    """What identifies a version of an object."""

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
            raise garbled(f"{what} that cannot be read: {error}") from error

    return checked


def garbled(message: str) -> Unavailable:
    """The error of an answer that is not one of an API server."""
    return Unavailable(0, "Garbled", message)


decode_page = _checked("a list", msgspec.json.Decoder(ListPage).decode)
_decode_item = _checked("an item of a list", msgspec.json.Decoder(_Item).decode)
decode_object = _checked("an object", msgspec.json.Decoder(dict[str, Any]).decode)
decode_event = _checked("a watch event", msgspec.json.Decoder(WatchEvent).decode)


def item_meta(item: msgspec.Raw) -> ItemMeta:
    """Metadata of a list item."""
    return _decode_item(item).metadata


class Lines:
    """Cuts a byte stream into lines. What is not yet a whole line waits, up to a bound."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that `chunk` completes, without empty ones. Unavailable where one is longer than any event."""
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
            raise garbled(f"a watch event is longer than {MAX_LINE_BYTES} bytes")
