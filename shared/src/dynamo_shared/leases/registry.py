"""Which replicas exist: each replica of a service has a key that lives as long as its lease."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from dynamo_shared.leases.rendezvous import SCHEME
from dynamo_shared.leases.session import Session
from dynamo_shared.leases.view import SYNC_INTERVAL, PrefixView


class Registry:
    """The replicas of one service, including this one. `run` must run."""

    def __init__(self, session: Session, service: str, about: Mapping[str, str]) -> None:
        self.replica = session.replica
        self._client = client = session.client
        self._lease = lease = session.lease
        self._prefix = f"{session.prefix}/registry/{service}/"
        self._value = msgspec.json.encode({**about, **SCHEME})
        self._view = PrefixView(client, self._prefix)
        self._members: dict[str, dict[str, str]] = {}
        self._listeners: list[Callable[[], None]] = []
        lease.on_change(self._view.wake)

    def members(self) -> dict[str, dict[str, str]]:
        """What each replica reports about itself, by replica id, in the last reading."""
        return dict(self._members)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call back when a replica was added or removed."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Stay registered until cancelled."""
        await self._view.keep_synced(self._lease, self._sync)

    async def _sync(self, _: asyncio.TaskGroup) -> float:
        snapshot = await self._view.read()
        key, lease = self._prefix + self.replica, self._lease.id
        own = snapshot.keys.get(key)
        if lease and (own is None or own.lease != lease or own.value != self._value):
            await self._client.put(key, self._value, lease=lease)
            snapshot = await self._view.read()
        members = {name.removeprefix(self._prefix): _about(kv.value) for name, kv in snapshot.keys.items()}
        if members != self._members:
            self._members = members
            for listener in self._listeners:
                listener()
        return SYNC_INTERVAL


def _about(value: bytes) -> dict[str, str]:
    try:
        return msgspec.json.decode(value, type=dict[str, str])
    except msgspec.DecodeError:  # written by another version: the replica exists, even if its report is unreadable
        return {}
