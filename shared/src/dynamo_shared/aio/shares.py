"""Shares of places: a client with many requests refuses only its own."""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class Shares:
    """Counts what is in progress, by client: an address, a network or a user.

    If all places are taken, a client with less than its share of them gets one more. Shares become smaller as clients
    become more, so `total` exceeds the number of places by at most one share of each client that came late.
    """

    def __init__(self) -> None:
        self._taken: Counter[Hashable] = Counter()

    @property
    def total(self) -> int:
        """Places that all clients have."""
        return self._taken.total()

    def count(self, client: Hashable) -> int:
        """Places that a client has."""
        return self._taken[client]

    def is_full(self, client: Hashable, most: int) -> bool:
        """Whether all of `most` places are taken, and this client has its share of them."""
        clients = len(self._taken) + (client not in self._taken)
        return self.total >= most and self._taken[client] * clients >= most

    @contextmanager
    def taken(self, client: Hashable) -> Iterator[None]:
        """A place of this client, while the block runs; check `is_full` before."""
        self._taken[client] += 1
        try:
            yield
        finally:
            self._taken[client] -= 1
            if not self._taken[client]:
                del self._taken[client]
