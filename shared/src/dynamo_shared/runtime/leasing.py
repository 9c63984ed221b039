"""Ownership and leadership of this process's services: through etcd where it is configured, trivial where it is not."""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from dynamo_shared.leases import AllKeys, AlwaysLeader, Leadership, Ownership
from dynamo_shared.runtime.health import Health, State
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings import Settings
from dynamo_shared.runtime.supervision import Supervisor

if TYPE_CHECKING:
    from dynamo_shared.leases.election import Election
    from dynamo_shared.leases.partitions import Partitions
    from dynamo_shared.leases.session import Session

COMPONENT = "etcd"


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


class ManyReplicas:
    """Replicas share the work through etcd. What a service asks for is begun with the first question."""

    def __init__(
        self, session: Session, tasks: asyncio.TaskGroup, metrics: Metrics, supervisor: Supervisor, version: str
    ) -> None:
        self._session = session
        self._tasks = tasks
        self._metrics = metrics
        self._supervisor = supervisor
        self._version = version
        self._running: list[asyncio.Task[None]] = []
        self._partitions: dict[str, Partitions] = {}
        self._elections: dict[str, Election] = {}

    def ownership(self, service: str) -> Ownership:
        """The keys of the partitions that this replica holds. A service that was started again begins without listeners."""
        from dynamo_shared.leases.partitions import Partitions  # noqa: PLC0415 - see `leasing`
        from dynamo_shared.leases.registry import Registry  # noqa: PLC0415

        partitions = self._partitions.get(service)
        if partitions is None:
            about = {"version": self._version, "host": socket.gethostname(), "pid": str(os.getpid())}
            registry = Registry(self._session, service, about)
            partitions = self._partitions[service] = Partitions(self._session, registry, service)
            held = self._metrics.partitions.labels(service)
            held.set_function(lambda: len(partitions.held))
            self.start(registry.run, f"registry-{service}")
            self.start(partitions.run, f"partitions-{service}")
        partitions.detach()
        return partitions

    def leadership(self, service: str) -> Leadership:
        """The election of that service, for which this replica stands from now on."""
        from dynamo_shared.leases.election import Election  # noqa: PLC0415 - see `leasing`

        election = self._elections.get(service)
        if election is None:
            election = self._elections[service] = Election(self._session, service)
            self.start(election.run, f"election-{service}")
        return election

    def start(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        """Run something for as long as the leases are needed."""
        self._running.append(self._tasks.create_task(self._supervisor.keep(name, work), name=name))

    def stop(self) -> None:
        """End all that was started."""
        for task in self._running:
            task.cancel()


@asynccontextmanager
async def leasing(settings: Settings, health: Health, metrics: Metrics) -> AsyncIterator[Leasing]:
    """What the settings ask for. At its end all that is held is given back, so that others need not wait."""
    etcd = settings.platform.etcd
    if not etcd.endpoints or settings.platform.replicas == 1:
        yield SingleReplica()
        return
    # Imported here: gRPC takes 27 MiB, which a single replica need not spend.
    from dynamo_shared.leases.channel import EtcdOptions  # noqa: PLC0415
    from dynamo_shared.leases.client import EtcdClient  # noqa: PLC0415
    from dynamo_shared.leases.session import Session  # noqa: PLC0415

    def password() -> str:
        # Read at each log-in, because it is rotated; OSError where that fails is etcd's trouble, not ours to end with.
        file = etcd.password_file
        return file.read_text().rstrip("\r\n") if file is not None else etcd.password.get_secret_value()

    options = EtcdOptions(
        endpoints=etcd.endpoints,
        ca_file=etcd.tls.ca_file,
        cert_file=etcd.tls.cert_file,
        key_file=etcd.tls.key_file,
        user=etcd.user,
        password=password,
    )
    async with EtcdClient(options) as client:
        session = Session.begin(
            client,
            prefix=f"{etcd.prefix.rstrip('/')}/{settings.platform.cluster_name}",
            replica=settings.platform.replica_id or default_replica_id(),
            ttl=math.ceil(etcd.lease_ttl),
        )
        lease, had = session.lease, False
        metrics.lease_alive.set_function(lambda: float(lease.alive()))

        def report() -> None:
            nonlocal had
            if had and not lease.alive():
                metrics.lease_losses.inc()
            had = lease.alive()
            if not lease.alive():
                health.set(COMPONENT, State.FAILED, lease.trouble or "no lease yet")
            elif lease.trouble:
                health.set(COMPONENT, State.DEGRADED, lease.trouble)
            else:
                health.ok(COMPONENT)

        lease.on_change(report)
        health.expect(COMPONENT)
        async with asyncio.TaskGroup() as tasks:
            many = ManyReplicas(
                session, tasks, metrics, Supervisor(COMPONENT, health, metrics), settings.platform.version
            )
            many.start(lease.run, "lease")
            try:
                yield many
            finally:
                # The services have ended by now: nothing is under way on what the lease holds.
                many.stop()
                had = False
                await lease.close()


def default_replica_id() -> str:
    """The pod's name, or the host's, and the process: the same container started again is the same replica."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}-{os.getpid()}"
