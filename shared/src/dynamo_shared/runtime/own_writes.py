"""Waits until STATE has a service's own writes, and compares them with the API server if STATE does not confirm them.

A data store that is restored from a backup may lose a write that no watcher has received. Then STATE has nothing to
report, and only the service believes in its write: each of its next writes would be refused (409). If the watcher is
unavailable, STATE is behind meanwhile, and still has objects that the service deleted.
"""

import asyncio
from contextlib import suppress

import structlog

from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.state.cache import ObjectCache

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
