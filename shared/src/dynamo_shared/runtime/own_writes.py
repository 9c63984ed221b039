"""Waits until STATE has a service's own writes, and compares them with the API server if STATE does not confirm them.

A data store that is restored from a backup may lose a write that no watcher has received. Then STATE has nothing to
report, and only the service believes in its write: each of its next writes would be refused (409). If the watcher is
unavailable, STATE is behind meanwhile, and still has objects that the service deleted.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.leases import Drainer, GainListener, Listener, Ownership
from dynamo_shared.state import ObjectCache, StateReader

#: Interval of checks for overdue writes. Seconds.
INTERVAL = 5.0
#: How long the end of work waits for STATE, which the watcher updates within milliseconds unless it is away. Seconds.
CONFIRMED_WITHIN = 5.0

log = structlog.get_logger("dynamo.own-writes")


async def check(cache: ObjectCache, kube: KubeClient) -> None:
    """Ask the API server for all overdue writes, one by one. Never raises KubeError: they are checked again later."""
    for key, write in cache.overdue():
        try:
            obj = await get_if_present(kube, write.resource, key)
        except KubeError as error:
            log.debug("cannot confirm own write", resource=write.resource.id, key=str(key), error=str(error))
            continue
        cache.correct(key, write, obj)


async def check_always(cache: ObjectCache, kube: KubeClient) -> None:
    """Check until cancelled."""
    while True:
        await asyncio.sleep(INTERVAL)
        await check(cache, kube)


async def confirmed(cache: ObjectCache) -> None:
    """Wait at most `CONFIRMED_WITHIN` until STATE has this service's writes, so that the next owner of its keys knows them."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CONFIRMED_WITHIN):
            await cache.confirmed()


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
            await confirmed(self._cache)

        self._ownership.before_release(drained)
