"""Keeps objects of one resource in little memory: as JSON, compressed with the first objects as the dictionary.

Objects of a resource are very similar: a Deployment of 4.6 KB compresses to about 500 bytes, while its dict takes 19
KB. Packing takes about 10 microseconds, unpacking 20 to 70.
"""

import zlib
from collections import OrderedDict
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from dynamo_shared.api.objects import KubeObject

Slot = TypeVar("Slot")

UNPACKED = 128
"""Limit of unpacked objects of a cache. 512 save no CPU with a hundred graphs at once, and take 6 MiB more per service."""

UNPACKED_BYTES = 4 << 20
"""Limit of their total JSON size, kept for packing. A dict may take twenty times as much, and an object may have 1 MB."""

_SAMPLES = 3
_WINDOW, _LEVEL, _MEMORY = -14, 3, 6
"""Raw deflate with 16 KiB, which holds the dictionary and an object; larger windows compress no better."""
_LARGEST_DICTIONARY = 11 << 10
_PLAIN, _DEFLATED = b"\0", b"\1"

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Packer:
    """Packs and unpacks similar objects. The first few become the dictionary and are not compressed themselves."""

    def __init__(self) -> None:
        self._samples: list[bytes] = []
        self._dictionary = b""
        # A compressor that has loaded the dictionary: copying it takes a quarter of the time of creating one.
        self._deflate: zlib._Compress | None = None

    def pack(self, content: bytes) -> bytes:
        """Pack an object that is encoded as JSON; only this packer can unpack it."""
        if self._deflate is None:
            self._sample(content)
            return _PLAIN + content
        deflate = self._deflate.copy()
        return _DEFLATED + deflate.compress(content) + deflate.flush()

    def unpack(self, packed: bytes) -> KubeObject:
        """Decode an object: an equal copy."""
        return self.unpack_sized(packed)[0]

    def unpack_sized(self, packed: bytes) -> tuple[KubeObject, int]:
        """The object and its size in bytes as JSON."""
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


class Form(NamedTuple):
    """An unpacked object in bytes: packed if it is known so, otherwise as JSON. `size`: bytes as JSON."""

    content: bytes
    size: int
    packed: bool

    @classmethod
    def of_json(cls, content: bytes) -> "Form":
        """An object that was never packed."""
        return cls(content, len(content), packed=False)


class Recent(Generic[Slot]):
    """Slots of the unpacked objects, least recently used first."""

    def __init__(self) -> None:
        self._used: OrderedDict[Slot, Form] = OrderedDict()
        self._bytes = 0

    def use(self, slot: Slot, form: Form) -> list[tuple[Slot, Form]]:
        """Record that an object is unpacked now.

        Returns the least recently used objects above the limits: the caller packs them.
        """
        self.forget(slot)
        self._used[slot] = form
        self._bytes += form.size
        idle = []
        while len(self._used) > 1 and (len(self._used) > UNPACKED or self._bytes > UNPACKED_BYTES):
            oldest = self._used.popitem(last=False)
            self._bytes -= oldest[1].size
            idle.append(oldest)
        return idle

    def touch(self, slot: Slot) -> None:
        """Record that an unpacked object was read."""
        self._used.move_to_end(slot)

    def forget(self, slot: Slot) -> None:
        """Remove an object that is deleted or packed."""
        if (form := self._used.pop(slot, None)) is not None:
            self._bytes -= form.size
