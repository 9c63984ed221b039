"""Which keys this replica works on: 32 partitions, each claimed in etcd by one replica's lease.

`claims.py` decides, this module acts. A claim is a key that is created only if it does not exist (`Epoch`), bound to
this replica's lease. It is deleted only after the work on it has ended, and only if it is still the same key.
"""

import asyncio
from collections.abc import Iterable
from contextvars import Context

import structlog

from dynamo_shared.aio import all_of
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases.claims import Claim, Claims, Drain
from dynamo_shared.leases.client import Snapshot
from dynamo_shared.leases.ownership import Ownership
from dynamo_shared.leases.registry import Registry
from dynamo_shared.leases.rendezvous import PARTITIONS, candidates, partition_of
from dynamo_shared.leases.session import Session
from dynamo_shared.leases.view import SETTLING_PAUSE, SYNC_INTERVAL, PrefixView

#: How long running work may delay the release of a partition, in seconds. Then listeners of `on_loss` must end it.
DRAIN_WITHIN = 30.0

#: A gain within this time after the last one joins the line. Seconds.
WITHIN = 1.0

log = structlog.get_logger("dynamo.leases")


class GainLog:
    """Logs the gains of all services of one process, for example at its start, in one line: one second after the last."""

    def __init__(self) -> None:
        self._gained: dict[str, set[int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, service: str, partitions: Iterable[int]) -> None:
        """Log these partitions of a service soon."""
        if self._timer is not None:
            # On a busy machine, services start seconds apart.
            self._timer.cancel()
        # In an empty context, without the log fields of the service.
        self._timer = asyncio.get_running_loop().call_later(WITHIN, self.write, context=Context())
        self._gained.setdefault(service, set()).update(partitions)

    def write(self) -> None:
        """Log what was not logged yet: one line for all services that gained the same."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        services: dict[str, list[str]] = {}
        for service, partitions in self._gained.items():
            services.setdefault(ranges(partitions), []).append(service)
        self._gained.clear()
        for gained, together in services.items():
            log.info("partitions gained", services=together, partitions=gained)


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in readable form: `0-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


class Partitions(Ownership):
    """Ownership through etcd. `run` must run; all methods belong to its event loop."""

    def __init__(self, session: Session, registry: Registry, service: str, gains: GainLog) -> None:
        super().__init__()
        self._client = client = session.client
        self._lease = lease = session.lease
        self._epoch = session.epoch
        self._registry = registry
        self._service = service
        self._gains = gains
        self._prefix = f"{session.prefix}/partitions/{service}/"
        self._claims = Claims(registry.replica, PARTITIONS)
        self._view = PrefixView(client, self._prefix)
        self._running = False
        lease.on_change(self._lease_changed)
        registry.on_change(self._view.wake)

    def owns(self, key: ObjectKey) -> bool:
        """Whether this replica may begin work on a key now."""
        return self._claims.holds(partition_of(key), self._lease.id)

    def keeps(self) -> frozenset[int]:
        """Partitions of this replica, including those being given away until work on them has ended."""
        return self._claims.kept(self._lease.id)

    def may_write(self) -> bool:
        """Whether the lease that binds all claims is alive."""
        return self._lease.alive()

    @property
    def held(self) -> frozenset[int]:
        """Partitions that this replica may work on now."""
        return self._claims.held(self._lease.id)

    async def run(self) -> None:
        """Hold this replica's share of the partitions, until cancelled."""
        self._running = True
        try:
            await self._view.keep_synced(self._lease, self._sync)
        except Exception:
            # `run` is restarted, and finds the existing claims: until then nothing is worked on, or given away.
            if self._claims.drop():
                self._report_loss()
            raise
        finally:
            self._running = False

    async def _sync(self, tasks: asyncio.TaskGroup) -> float:
        """Read, decide, act. Returns the seconds until the next sync."""
        wait, snapshot = SYNC_INTERVAL, await self._view.read()
        lease = self._lease.id
        members = self._registry.members()
        decision = self._claims.observe(lease, members, self._read(snapshot), candidates(members))
        if decision.lost:
            self._gains.write()
            log.info("partitions lost", service=self._service, partitions=ranges(decision.lost))
        if decision.cut_off:
            # Not given away but lost: with the lease, with the server's data, or deleted by another client.
            self._lease.check()
            self._report_loss()
        if decision.gained:
            self._gains.add(self._service, decision.gained)
            self._report_gain(decision.gained)
        if decision.drain:
            tasks.create_task(self._drain(decision.drain))
        done = await all_of(
            [self._release(partition, claim) for partition, claim in decision.release]
            + [self._claim(partition, lease) for partition in decision.claim]
        )
        if decision.release or any(done):
            self._view.wake()
        elif decision.claim:
            wait = SETTLING_PAUSE
        return wait

    def _read(self, snapshot: Snapshot) -> dict[int, Claim]:
        names = {f"{self._prefix}{partition}": partition for partition in range(PARTITIONS)}
        return {names[kv.key]: Claim(kv.lease, kv.created) for kv in snapshot.keys.values() if kv.key in names}

    async def _claim(self, partition: int, lease: int) -> bool:
        return await self._epoch.claim(f"{self._prefix}{partition}", self._registry.replica.encode(), lease)

    async def _release(self, partition: int, claim: Claim) -> bool:
        await self._client.delete_held(f"{self._prefix}{partition}", created=claim.created, lease=claim.lease)
        return True

    async def _drain(self, drains: tuple[Drain, ...]) -> None:
        """Wait until running work on partitions has ended, then have their claims deleted."""
        leaving = {drain.partition for drain in drains}

        def concerns(key: ObjectKey) -> bool:
            # If this replica owns a partition again, all its keys wait again: none of them may be dropped.
            return partition_of(key) in leaving and not self.owns(key)

        try:
            async with asyncio.timeout(DRAIN_WITHIN):
                await all_of([drainer(concerns) for drainer in self._drainers])
        except Exception as error:
            log.warning(
                "running work was aborted at the release of a partition",
                service=self._service,
                error=str(error) or type(error).__name__,
            )
            self._report_loss()
        for drain in drains:
            self._claims.drained(drain)
        self._view.wake()

    def _lease_changed(self) -> None:
        if not self._lease.alive():
            dropped = self._claims.drop()
            if dropped:
                self._gains.write()
                # At an orderly end, the lease ends after the work.
                say = log.warning if self._running else log.debug
                say("partitions lost with the lease", service=self._service, count=len(dropped))
                self._report_loss()
        self._view.wake()
