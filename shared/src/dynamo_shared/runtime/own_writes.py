"""A service's own writes, held against the API server where STATE does not confirm them.

A store that is restored from a backup may lose a write that no watcher has heard of. STATE then has nothing to report, and
the service alone believes in what it wrote: it would be refused (409) with each write that follows. Where the watcher is
away, STATE is behind for as long, and has still what the service deleted.
"""

import asyncio

import structlog

from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.state.cache import ObjectCache

#: How often overdue writes are looked for. Seconds.
INTERVAL = 5.0

log = structlog.get_logger("dynamo.own-writes")


async def check(cache: ObjectCache, kube: KubeClient) -> None:
    """Ask the API server once for all that is overdue, one after the other. Never raises KubeError: it is asked again later."""
    for key, write in cache.overdue():
        try:
            obj = await get_if_present(kube, write.resource, key)
        except KubeError as error:
            log.debug("a write is not confirmed", resource=write.resource.id, key=str(key), error=str(error))
            continue
        cache.correct(key, write, obj)


async def check_always(cache: ObjectCache, kube: KubeClient) -> None:
    """Check without end."""
    while True:
        await asyncio.sleep(INTERVAL)
        await check(cache, kube)
