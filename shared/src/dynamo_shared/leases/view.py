"""The content of etcd under a prefix, kept current: a watch says when to read, a reading says what exists.

A watch can skip events, hang and be compacted; a reading is right. So each batch of changes, each (re)connect, each
compaction and each period causes another reading of the prefix, which holds a few dozen keys.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from dynamo_shared.aio import endless, spread
from dynamo_shared.leases.client import EtcdClient, Snapshot
from dynamo_shared.leases.errors import EtcdError, LeaseNotFoundError
from dynamo_shared.leases.lease import Lease

#: Seconds between readings without a hint.
REREAD_EVERY = 10.0
#: Seconds until the next sync without a hint.
SYNC_INTERVAL = 10.0
#: Pause while an etcd without data lets old leases run out. Seconds.
SETTLING_PAUSE = 0.5
#: Pause after etcd did not answer. Seconds, with jitter.
RETRY_PAUSE = 0.5
#: Pause before a broken watch is started again. Seconds, with jitter.
RECONNECT_PAUSE = 0.5

log = structlog.get_logger("dynamo.leases")


class PrefixView:
    """A prefix, and when to read it: at each hint that its content may have changed, and at each `wake`."""

    def __init__(self, client: EtcdClient, prefix: str) -> None:
        self.prefix = prefix
        self._client = client
        self._awake = asyncio.Event()

    def wake(self) -> None:
        """Sync now, or once more after the running sync, however often this is called."""
        self._awake.set()

    async def read(self) -> Snapshot:
        """The present content. Raises EtcdError."""
        return await self._client.read(self.prefix)

    async def keep_synced(self, lease: Lease, sync: Callable[[asyncio.TaskGroup], Awaitable[float]]) -> None:
        """Call `sync` repeatedly, until cancelled: it reads, decides, acts, and returns the seconds until the next
        call.

        It may start tasks in the group that it gets.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(endless(self._watch()))
            while True:
                wait = SYNC_INTERVAL
                try:
                    wait = await sync(tasks)
                    lease.note(self.prefix, "")
                except LeaseNotFoundError:
                    lease.check()
                except EtcdError as error:
                    lease.note(self.prefix, str(error))
                    # Not shortened by `wake`, which listeners of the lease call after each new reason.
                    await asyncio.sleep(spread(RETRY_PAUSE))
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._awake.wait()
                self._awake.clear()

    async def _watch(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(endless(self._tick()))
            while True:
                try:
                    # From the revision after the last reading, so that no change in between is missed. A server that
                    # has lost its data has a lower revision, and its watch would be silent until it has caught up.
                    snapshot = await self.read()
                    async with self._client.watch(self.prefix, snapshot.revision + 1) as changes:
                        async for _ in changes:
                            self.wake()
                except EtcdError as error:
                    log.debug("watch failed", prefix=self.prefix, error=str(error))
                self.wake()
                await asyncio.sleep(spread(RECONNECT_PAUSE))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(REREAD_EVERY)
            self.wake()
