"""Ownership of keys whose objects have been read: with a part of them, a reconciler would consider the others missing.

For the same reason, a key is given away only after STATE has the writes of its former owner.
"""

from collections.abc import Callable

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases import Drainer, GainListener, Listener, Ownership
from dynamo_shared.runtime import own_writes
from dynamo_shared.state import ObjectCache, StateReader


class ReadOwnership(Ownership):
    """Like `ownership`, but keys are owned only after `reader` has read their objects, and released only after it has
    read this replica's writes, which are in `cache`.
    """

    def __init__(self, ownership: Ownership, reader: StateReader, cache: ObjectCache) -> None:
        self._ownership = ownership
        self._reader = reader
        self._cache = cache
        self.is_shared = ownership.is_shared
        ownership.on_gain(reader.cover)

    def owns(self, key: ObjectKey) -> bool:
        """Whether this replica may work on a key now."""
        return self._ownership.owns(key) and self._reader.covers(key)

    def keeps(self) -> frozenset[int]:
        """Partitions whose objects this replica must know."""
        return self._ownership.keeps()

    def may_write(self) -> bool:
        """Whether this replica may still own its keys."""
        return self._ownership.may_write()

    def on_gain(self, listener: GainListener) -> None:
        """Register a listener for gained partitions, called once the objects of their keys have been read."""
        self._reader.on_covered(listener)

    def on_loss(self, listener: Listener) -> None:
        """Register a listener for the immediate loss of keys."""
        self._ownership.on_loss(listener)

    def before_release(self, drainer: Drainer) -> None:
        """Register a drainer that is awaited before keys are released, with the confirmation of what it wrote."""

        async def drained(gone: Callable[[ObjectKey], bool]) -> None:
            await drainer(gone)
            await own_writes.confirmed(self._cache)

        self._ownership.before_release(drained)
