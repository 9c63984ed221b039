"""Abandons the lease if this replica cannot reach the API server or NATS, but another replica can reach both.

A node may lose its connection only to these. Its replicas still reach etcd, and would hold keys that they cannot work
on, while other replicas that could stand by. If no replica reaches them, each keeps what it has: a change of owners
would help no one, and everything would be read again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from dynamo_shared.aio import spread
from dynamo_shared.leases.errors import EtcdError
from dynamo_shared.leases.session import Session

#: Seconds between two probes, with jitter.
PROBE_EVERY = 10.0
#: Seconds without a connection after which a replica gives way. An API server that restarts needs less.
SUSPEND_AFTER = 60.0
_REACHES, _DOES_NOT = b"reaches", b""
_REASON = "this replica cannot reach the API server or NATS; another replica can and takes over"

log = structlog.get_logger("dynamo.leases")


class Reach:
    """Publishes whether this replica reaches what its kind needs, and reads the same of others. `run` must run."""

    def __init__(
        self,
        session: Session,
        kind: str,
        probe: Callable[[], Awaitable[bool]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`kind`: what the replicas work on together; `probe`: whether what they need answers, with its own time limit."""
        self._client, self._lease, self._probe, self._clock = session.client, session.lease, probe, clock
        self._prefix = f"{session.prefix}/reach/{kind}/"
        self._key = self._prefix + session.replica
        self._published: tuple[int, bytes] | None = None
        self._down_since: float | None = None
        """since when it has not answered"""

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            await self.check()
            await asyncio.sleep(spread(PROBE_EVERY))

    async def check(self) -> None:
        """Probe once, publish the result, and abandon the lease or acquire one again if that follows."""
        reaches, now = await self._probe(), self._clock()
        if reaches:
            self._down_since = None
            self._lease.resume()
        elif self._down_since is None:
            self._down_since = now
        try:
            await self._publish(_REACHES if reaches else _DOES_NOT)
            is_overdue = self._down_since is not None and now - self._down_since >= SUSPEND_AFTER
            # Probed again: if the servers have just returned for all replicas, one of them notices first.
            if is_overdue and await self._is_reached_elsewhere() and not await self._probe():
                self._lease.suspend(_REASON)
        except EtcdError as error:
            log.debug("cannot publish the result of the probe", prefix=self._prefix, error=str(error))

    async def _publish(self, word: bytes) -> None:
        lease = self._lease.id
        if lease and self._published != (lease, word):
            await self._client.put(self._key, word, lease=lease)
            self._published = lease, word

    async def _is_reached_elsewhere(self) -> bool:
        others = (await self._client.read(self._prefix)).keys
        return any(kv.value == _REACHES for key, kv in others.items() if key != self._key)
