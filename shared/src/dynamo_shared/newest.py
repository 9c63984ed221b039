"""A dictionary that forgets: memory for as many entries as it is worth, whatever others ask for."""

from collections import OrderedDict
from typing import TypeVar

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
