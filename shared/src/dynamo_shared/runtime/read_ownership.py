"""Ownership of keys whose objects have been read: with half of them, a reconciler takes the others for missing."""

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases import Drainer, GainListener, Listener, Ownership
from dynamo_shared.state import StateReader


class ReadOwnership(Ownership):
    """What `ownership` says, from when `reader` has read what belongs to it."""

    def __init__(self, ownership: Ownership, reader: StateReader) -> None:
        self._ownership = ownership
        self._reader = reader
        ownership.on_gain(reader.cover)

    def owns(self, key: ObjectKey) -> bool:
        """Whether this replica may work on a key now."""
        return self._ownership.owns(key) and self._reader.covers(key)

    def keeps(self) -> frozenset[int]:
        """Partitions whose objects this replica has to know."""
        return self._ownership.keeps()

    def may_write(self) -> bool:
        """Whether what this replica works on can still be its own."""
        return self._ownership.may_write()

    def on_gain(self, listener: GainListener) -> None:
        """Call back with partitions that were gained, once the objects of their keys have been read."""
        self._reader.on_covered(listener)

    def on_loss(self, listener: Listener) -> None:
        """Call back when keys were lost at once."""
        self._ownership.on_loss(listener)

    def before_release(self, drainer: Drainer) -> None:
        """Await this before keys are given away."""
        self._ownership.before_release(drainer)
