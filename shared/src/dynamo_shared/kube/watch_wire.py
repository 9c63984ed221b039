"""What lists and watches look like on the wire, decoded no further than needed.

A list page keeps its items as raw JSON, so that a relist reads the metadata of known objects and decodes
only what changed; a watch is cut into lines whatever the chunks that it comes in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.kube.depth import bounded
from dynamo_shared.kube.errors import Unavailable

# etcd refuses objects above 1.5 MiB (3 MiB as JSON with managedFields); a longer line is not a watch event.
MAX_LINE_BYTES = 16 * 2**20

# Bookmarks carry nothing but a resourceVersion.
BOOKMARK = "BOOKMARK"
ERROR = "ERROR"


class WatchEvent(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: KubeObject


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
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


decode_page = bounded(msgspec.json.Decoder(ListPage).decode)
_decode_item = bounded(msgspec.json.Decoder(_Item).decode)
decode_object = bounded(msgspec.json.Decoder(dict[str, Any]).decode)
decode_event = bounded(msgspec.json.Decoder(WatchEvent).decode)


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
            raise Unavailable(0, "Garbled", f"a watch event is longer than {MAX_LINE_BYTES} bytes")
