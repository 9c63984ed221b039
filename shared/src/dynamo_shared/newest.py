"""Dictionaries that forget: memory for as many entries as it is worth, whatever others ask for."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Newest(OrderedDict[K, V]):
    """At most `most` entries: the one that was set or `used` longest ago makes room for a new one. Not safe for threads."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)

    def used(self, key: K) -> V | None:
        """The value of a key, which counts as new again; None where there is none."""
        if key not in self:
            return None
        self.move_to_end(key)
        return self[key]


class NewestOfLanes(Generic[K, V]):
    """At most `most` entries of all lanes: if there are more, the oldest of the lane with the most entries makes room.

    A lane is a namespace: one with many entries forgets its own. Not safe for threads.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._lanes: dict[str, OrderedDict[K, V]] = {}
        self._of_length: dict[int, dict[str, None]] = {}
        """lanes by their number of entries: lanes may be as many as entries, and a full dictionary asks at each `put`"""
        self._longest = 0

    def get(self, lane: str, key: K) -> V | None:
        """The value of a key; None where there is none."""
        entries = self._lanes.get(lane)
        return None if entries is None else entries.get(key)

    def used(self, lane: str, key: K) -> V | None:
        """The value of a key, which counts as new again; None where there is none."""
        if (entries := self._lanes.get(lane)) is None or key not in entries:
            return None
        entries.move_to_end(key)
        return entries[key]

    def put(self, lane: str, key: K, value: V) -> None:
        """Set the value of a key, which counts as new."""
        self.pop(lane, key)
        entries = self._lanes.setdefault(lane, OrderedDict())
        entries[key] = value
        self._count += 1
        self._moved(lane, len(entries) - 1, len(entries))
        if self._count > self._most:
            longest = next(iter(self._of_length[self._longest]))
            self.pop(longest, next(iter(self._lanes[longest])))

    def pop(self, lane: str, key: K) -> None:
        """Forget a key, if it is known."""
        if (entries := self._lanes.get(lane)) is None or key not in entries:
            return
        del entries[key]
        self._count -= 1
        self._moved(lane, len(entries) + 1, len(entries))
        if not entries:
            del self._lanes[lane]

    def values(self) -> Iterator[V]:
        """All values."""
        for entries in self._lanes.values():
            yield from entries.values()

    def _moved(self, lane: str, before: int, length: int) -> None:
        if before:
            del self._of_length[before][lane]
            if not self._of_length[before]:
                del self._of_length[before]
        if length:
            self._of_length.setdefault(length, {})[lane] = None
        # A lane changes by one entry: if it alone was the longest, it still is.
        if length > self._longest or self._longest not in self._of_length:
            self._longest = length
