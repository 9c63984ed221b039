"""The shared context of everything that a process keeps in etcd."""

from dataclasses import dataclass
from typing import Self

from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.epoch import Epoch
from dynamo_shared.leases.lease import Lease


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
