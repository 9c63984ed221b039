"""The active replica: its lease holds a key, which is created only if it does not exist."""

import asyncio
from typing import NamedTuple

import structlog

from dynamo_shared.leases.session import Session
from dynamo_shared.leases.view import SETTLING_PAUSE, SYNC_INTERVAL, PrefixView

log = structlog.get_logger("dynamo.leases")


class _Seat(NamedTuple):
    """The leadership of this replica: its lease, and the revision of the key."""

    lease: int
    created: int


class Election:
    """Leadership through etcd. `run` must run, and takes part in the election; all methods belong to its event loop."""

    def __init__(self, session: Session, name: str) -> None:
        self._client = client = session.client
        self._lease = lease = session.lease
        self._epoch = session.epoch
        self._name = name
        self._replica = session.replica
        self._key = f"{session.prefix}/election/{name}"
        self._view = PrefixView(client, self._key)
        self._seat: _Seat | None = None
        self._elected, self._lost = asyncio.Event(), asyncio.Event()
        self._lost.set()
        lease.on_change(self._lease_changed)

    def is_leader(self) -> bool:
        """Whether this replica leads, and its lease is alive."""
        return self._seat is not None and self._seat.lease == self._lease.id

    async def wait_elected(self) -> None:
        """Return as soon as this replica leads."""
        while not self.is_leader():
            await self._elected.wait()
            if not self.is_leader():
                self._step_down()

    async def wait_lost(self) -> None:
        """Return as soon as this replica no longer leads."""
        while self.is_leader():
            await self._lost.wait()

    async def run(self) -> None:
        """Take part in the election until cancelled."""
        await self._view.keep_synced(self._lease, self._sync)

    async def _sync(self, _: asyncio.TaskGroup) -> float:
        """Read, decide, act. Returns the seconds until the next sync."""
        holder = await self._client.get(self._key)
        lease = self._lease.id
        seat = _Seat(holder.lease, holder.created) if holder is not None and lease and holder.lease == lease else None
        if seat is None and self._seat is not None:
            self._lease.check()
            self._step_down()
        elif seat is not None and seat != self._seat:
            self._seat = seat
            log.info("elected", election=self._name, replica=self._replica)
            self._lost.clear()
            self._elected.set()
        if holder is None and lease:
            if await self._epoch.claim(self._key, self._replica.encode(), lease):
                self._view.wake()
            else:
                return SETTLING_PAUSE
        return SYNC_INTERVAL

    def _step_down(self) -> None:
        if self._seat is not None:
            log.info("no longer leads", election=self._name, replica=self._replica)
        self._seat = None
        self._elected.clear()
        self._lost.set()

    def _lease_changed(self) -> None:
        if not self._lease.alive():
            self._step_down()
        self._view.wake()
