"""The shared context of everything that a process keeps in etcd: its lease, and the wait after etcd has lost its data."""

from dataclasses import dataclass
from typing import Self

import structlog

from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.lease import Lease

log = structlog.get_logger("dynamo.leases")


class Epoch:
    """The marker of one prefix. `ttl` must be that of all replicas' leases, in seconds.

    Claims are safe because etcd knows all living leases. An etcd that starts without its data knows none, while replicas
    continue until their own deadline, up to a lifetime later. So the data contains a marker. A replica that misses the
    marker writes it together with a key under a fresh lease of one lifetime, which is not renewed. No claim is granted
    while that key exists. The very first start also waits: once in the life of an etcd.
    """

    def __init__(self, client: EtcdClient, prefix: str, ttl: int) -> None:
        self._client = client
        self._ttl = ttl
        self.marker = f"{prefix}/epoch"
        self.settling = f"{prefix}/settling"

    async def claim(self, key: str, value: bytes, lease: int) -> bool:
        """Write a key only if it does not exist and no replica can believe to hold it. Returns whether it was written.

        Raises EtcdError.
        """
        written = await self._client.create(key, value, lease=lease, present=(self.marker,), absent=(self.settling,))
        if not written:
            await self._begin()
        return written

    async def _begin(self) -> None:
        """Mark the data, if it has no marker."""
        if await self._client.get(self.marker) is not None:
            return
        grant = await self._client.grant(self._ttl)
        if await self._client.create_both((self.marker, b"", 0), (self.settling, b"", grant.lease)):
            log.warning("etcd is new or has lost its data: waiting until old leases have expired", ttl=grant.ttl)
        else:
            await self._client.revoke(grant.lease)


@dataclass(frozen=True, slots=True)
class Session:
    """One replica's place in etcd: its lease, its name, and the prefix of the keys."""

    client: EtcdClient
    lease: Lease
    epoch: Epoch
    prefix: str
    replica: str

    @classmethod
    def begin(cls, client: EtcdClient, *, prefix: str, replica: str, ttl: int) -> Self:
        """A session with a new lease, whose `run` must run. `ttl` (seconds) is the same for all replicas."""
        return cls(client, Lease(client, ttl), Epoch(client, prefix, ttl), prefix, replica)
