"""Dictionaries of limited size that evict the least recently used entry. They are not safe for threads."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(OrderedDict[K, V]):
    """At most `capacity` entries: a new one evicts the one that was set or touched longest ago. `get` is not a touch."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._capacity:
            self.popitem(last=False)

    def touch(self, key: K) -> V | None:
        """The value of a key, which becomes the most recently used; None for an unknown key."""
        if key not in self:
            return None
        self.move_to_end(key)
        return self[key]


class LaneLruCache(Generic[K, V]):
    """At most `capacity` entries of all lanes: a new one evicts the least recently used entry of the largest lane.

    A lane is a namespace: one with many entries evicts only its own entries. `get` is not a touch.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._count = 0
        self._lanes: dict[str, OrderedDict[K, V]] = {}
        self._by_size: dict[int, dict[str, None]] = {}
        """lanes by their number of entries, because each `put` on a full cache needs the largest of up to `capacity` lanes"""
        self._largest = 0
        """the number of entries of the largest lane"""

    def get(self, lane: str, key: K) -> V | None:
        """The value of a key; None for an unknown key."""
        return self._lanes[lane].get(key) if lane in self._lanes else None

    def touch(self, lane: str, key: K) -> V | None:
        """The value of a key, which becomes the most recently used; None for an unknown key."""
        if (entries := self._lanes.get(lane)) is None or key not in entries:
            return None
        entries.move_to_end(key)
        return entries[key]

    def put(self, lane: str, key: K, value: V) -> None:
        """Set the value of a key, which becomes the most recently used."""
        self.pop(lane, key)
        entries = self._lanes.setdefault(lane, OrderedDict())
        entries[key] = value
        self._count += 1
        self._resized(lane, len(entries) - 1, len(entries))
        if self._count > self._capacity:
            largest = next(iter(self._by_size[self._largest]))
            self.pop(largest, next(iter(self._lanes[largest])))

    def pop(self, lane: str, key: K) -> None:
        """Remove a key, if it is known."""
        if (entries := self._lanes.get(lane)) is None or key not in entries:
            return
        del entries[key]
        self._count -= 1
        self._resized(lane, len(entries) + 1, len(entries))
        if not entries:
            del self._lanes[lane]

    def values(self) -> Iterator[V]:
        """The values of all lanes."""
        for entries in self._lanes.values():
            yield from entries.values()

    def _resized(self, lane: str, before: int, size: int) -> None:
        if before:
            del self._by_size[before][lane]
            if not self._by_size[before]:
                del self._by_size[before]
        if size:
            self._by_size.setdefault(size, {})[lane] = None
        # A lane changes by one entry: if it was the only largest one, it still is the largest.
        if size > self._largest or self._largest not in self._by_size:
            self._largest = size
