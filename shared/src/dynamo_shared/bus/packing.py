"""Objects of one resource in little memory: JSON, compressed with the first of them as the dictionary.

Objects of a resource are much alike: of a Deployment of 4.6 KB some 500 bytes are left, where a dict takes 19 KB. Packing
takes some 40 microseconds, unpacking 20 to 70.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from typing import Any

import msgspec

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey

UNPACKED = 1024
"""Objects of a resource that stay unpacked at most: all of three hundred graphs that are created at once."""

AT_ONCE = 64
"""Objects that one call of `Recent.rest` packs at most: it must not hold up what waits for the loop."""

_SAMPLES = 3
_WINDOW, _LEVEL, _MEMORY = -14, 3, 6
"""Raw deflate of 16 KiB, which holds the dictionary and an object; more compresses no better."""
_LARGEST_DICTIONARY = 8 << 10
_PLAIN, _DEFLATED = b"\0", b"\1"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Packer:
    """Packs and unpacks objects that are alike. The first few become the dictionary, and are themselves not compressed."""

    def __init__(self) -> None:
        self._samples: list[bytes] = []
        self._dictionary = b""

    def pack(self, obj: KubeObject) -> bytes:
        """An object as bytes that only this packer can read."""
        content = _encode(obj)
        if not self._dictionary:
            self._sample(content)
            return _PLAIN + content
        deflate = zlib.compressobj(
            _LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, zdict=self._dictionary
        )
        return _DEFLATED + deflate.compress(content) + deflate.flush()

    def unpack(self, packed: bytes) -> KubeObject:
        """The object again: equal, and not the same."""
        if packed[:1] == _PLAIN:
            return _decode(memoryview(packed)[1:])
        return _decode(zlib.decompressobj(_WINDOW, zdict=self._dictionary).decompress(memoryview(packed)[1:]))

    def _sample(self, content: bytes) -> None:
        self._samples.append(content[-_LARGEST_DICTIONARY // _SAMPLES :])
        if len(self._samples) == _SAMPLES:
            self._dictionary = b"".join(self._samples)
            self._samples.clear()


class Recent:
    """Which objects of a resource are unpacked, the one that was used longest ago first."""

    def __init__(self) -> None:
        self._used: OrderedDict[ObjectKey, tuple[int, bytes | None]] = OrderedDict()
        self._round = 0

    def __len__(self) -> int:
        return len(self._used)

    def use(self, key: ObjectKey, packed: bytes | None = None) -> None:
        """An object was read or written. `packed`: its packed form, where that is known."""
        self._used[key] = (self._round, packed)
        self._used.move_to_end(key)

    def touch(self, key: ObjectKey) -> None:
        """An object that is unpacked was read."""
        used = self._used[key]
        if used[0] != self._round:
            self.use(key, used[1])

    def forget(self, key: ObjectKey) -> None:
        """An object is gone."""
        self._used.pop(key, None)

    def oldest(self) -> tuple[ObjectKey, bytes | None]:
        """The object that was used longest ago, which is to be packed, with its packed form where that is known."""
        key, (_, packed) = self._used.popitem(last=False)
        return key, packed

    def rest(self) -> list[tuple[ObjectKey, bytes | None]]:
        """Objects that were not used since the last call, at most `AT_ONCE`: to be packed."""
        idle: list[tuple[ObjectKey, bytes | None]] = []
        while self._used and len(idle) < AT_ONCE and next(iter(self._used.values()))[0] < self._round:
            idle.append(self.oldest())
        self._round += 1
        return idle
