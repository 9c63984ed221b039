"""Waiting keys in lanes that take turns: a lane with many keys delays only itself.

A lane is a namespace. However many keys one lane has, another lane's first key is taken within one round of all lanes.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
Lane: TypeAlias = str


class Turns(Generic[K]):
    """Keys in order of arrival within their lane. State is kept only for waiting keys.

    Every operation takes constant time, except `last_of_longest`, which is linear in the number of lanes.
    """

    def __init__(self, lane: Callable[[K], Lane]) -> None:
        self._lane = lane
        self._keys: dict[Lane, OrderedDict[K, float]] = {}
        self._order: OrderedDict[Lane, None] = OrderedDict()
        """lanes that have keys and are not parked; the next one first"""
        self._parked: set[Lane] = set()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: K) -> bool:
        return key in self._keys.get(self._lane(key), ())

    def __iter__(self) -> Iterator[K]:
        for keys in self._keys.values():
            yield from keys

    @property
    def available(self) -> bool:
        """Whether `pop` would return a key: whether a lane that is not parked has keys."""
        return bool(self._order)

    def add(self, key: K, at: float = 0.0) -> None:
        """Add a key that waits since `at`, if `pop` shall say since when. It must not already be waiting."""
        lane = self._lane(key)
        keys = self._keys.get(lane)
        if keys is None:
            keys = self._keys[lane] = OrderedDict()
            if lane not in self._parked:
                self._order[lane] = None
        keys[key] = at
        self._count += 1

    def pop(self) -> tuple[K, float]:
        """The next lane's first key, and since when it waited; the lane is then last. Raises KeyError without a key."""
        lane, _ = self._order.popitem(last=False)
        keys = self._keys[lane]
        key, at = keys.popitem(last=False)
        self._count -= 1
        if keys:
            self._order[lane] = None
        else:
            del self._keys[lane]
        return key, at

    def last_of_longest(self) -> K:
        """The last key of the lane with the most keys, which is the first to drop. Raises ValueError without a key."""
        longest = max(self._keys, key=lambda lane: len(self._keys[lane]))
        return next(reversed(self._keys[longest]))

    def discard(self, key: K) -> bool:
        """Remove a key. Returns whether it was waiting."""
        lane = self._lane(key)
        keys = self._keys.get(lane)
        if keys is None or keys.pop(key, None) is None:
            return False
        self._count -= 1
        if not keys:
            del self._keys[lane]
            self._order.pop(lane, None)
        return True

    def park(self, lane: Lane, parked: bool) -> None:
        """Skip a lane, or no longer skip it."""
        if parked:
            self._parked.add(lane)
            self._order.pop(lane, None)
        elif lane in self._parked:
            self._parked.discard(lane)
            if lane in self._keys:
                self._order[lane] = None
