"""Objects of one resource in little memory: JSON, compressed with the first of them as the dictionary.

Objects of a resource are much alike: of a Deployment of 4.6 KB some 500 bytes are left, where a dict takes 19 KB. Packing
takes some 10 microseconds, unpacking 20 to 70.
"""

import zlib
from collections import OrderedDict
from typing import Any, Generic, TypeVar

import msgspec

from dynamo_shared.api.objects import KubeObject

Slot = TypeVar("Slot")

UNPACKED = 128
"""Objects that a cache has unpacked at most. Of 512, a hundred graphs at once take no less CPU, and 6 MiB more a service."""

UNPACKED_BYTES = 4 << 20
"""Of these as JSON. Objects of many small values take twenty times as much memory, and may have a megabyte each."""

_SAMPLES = 3
_WINDOW, _LEVEL, _MEMORY = -14, 3, 6
"""Raw deflate of 16 KiB, which holds the dictionary and an object; more compresses no better."""
_LARGEST_DICTIONARY = 11 << 10
_PLAIN, _DEFLATED = b"\0", b"\1"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Packer:
    """Packs and unpacks objects that are alike. The first few become the dictionary, and are themselves not compressed."""

    def __init__(self) -> None:
        self._samples: list[bytes] = []
        self._dictionary = b""
        # With the dictionary read in: a copy takes a quarter of the time that a new one needs.
        self._deflate: zlib._Compress | None = None

    def pack(self, obj: KubeObject) -> bytes:
        """An object as bytes that only this packer can read."""
        content = _encode(obj)
        if self._deflate is None:
            self._sample(content)
            return _PLAIN + content
        deflate = self._deflate.copy()
        return _DEFLATED + deflate.compress(content) + deflate.flush()

    def unpack(self, packed: bytes) -> KubeObject:
        """The object again: equal, and not the same."""
        return self.unpack_sized(packed)[0]

    def unpack_sized(self, packed: bytes) -> tuple[KubeObject, int]:
        """The object, and its bytes as JSON."""
        content: bytes | memoryview = memoryview(packed)[1:]
        if packed[:1] != _PLAIN:
            content = zlib.decompressobj(_WINDOW, zdict=self._dictionary).decompress(content)
        return _decode(content), len(content)

    def _sample(self, content: bytes) -> None:
        self._samples.append(content[-_LARGEST_DICTIONARY // _SAMPLES :])
        if len(self._samples) == _SAMPLES:
            self._dictionary = b"".join(self._samples)
            self._deflate = zlib.compressobj(
                _LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, zdict=self._dictionary
            )
            self._samples.clear()


class Recent(Generic[Slot]):
    """Which objects are unpacked, the one that was used longest ago first."""

    def __init__(self) -> None:
        self._used: OrderedDict[Slot, tuple[int, bytes | None]] = OrderedDict()
        self._bytes = 0

    def use(self, slot: Slot, size: int, packed: bytes | None = None) -> list[tuple[Slot, bytes | None]]:
        """An object of a size is unpacked now. `packed`: its packed form, where that is known.

        Returns those that were used longest ago, where there is too much now: they are to be packed.
        """
        self.forget(slot)
        self._used[slot] = size, packed
        self._bytes += size
        idle = []
        while len(self._used) > 1 and (len(self._used) > UNPACKED or self._bytes > UNPACKED_BYTES):
            oldest, (freed, known) = self._used.popitem(last=False)
            self._bytes -= freed
            idle.append((oldest, known))
        return idle

    def touch(self, slot: Slot) -> None:
        """An object that is unpacked was read."""
        self._used.move_to_end(slot)

    def forget(self, slot: Slot) -> None:
        """An object is gone."""
        self._bytes -= self._used.pop(slot, (0, None))[0]
