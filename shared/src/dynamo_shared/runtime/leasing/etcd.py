"""Leasing through etcd: all replicas of a service share its work."""

import asyncio
import math
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from dynamo_shared.kube import KubeClient, KubeError
from dynamo_shared.kube.errors import Unauthorized, Unavailable
from dynamo_shared.leases import Leadership, Ownership
from dynamo_shared.leases.channel import EtcdOptions
from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.election import Election
from dynamo_shared.leases.partitions import GainLog, Partitions
from dynamo_shared.leases.reach import Reach
from dynamo_shared.leases.registry import Registry
from dynamo_shared.leases.session import Session
from dynamo_shared.runtime.health import Health, HealthState
from dynamo_shared.runtime.leasing.base import Leasing, default_replica_id
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings import Settings
from dynamo_shared.runtime.settings.addresses import Tls
from dynamo_shared.runtime.settings.platform import Etcd, Platform
from dynamo_shared.runtime.supervision import Supervisor

COMPONENT = "etcd"
#: How long the API server may take to answer with its version. Seconds.
PROBE_WITHIN = 15.0


class ManyReplicas(Leasing):
    """Replicas share the work through etcd. A service's registration or election starts with its first call."""

    def __init__(
        self, session: Session, tasks: asyncio.TaskGroup, metrics: Metrics, supervisor: Supervisor, version: str
    ) -> None:
        self._gains = GainLog()
        self._session = session
        self._tasks = tasks
        self._metrics = metrics
        self._supervisor = supervisor
        self._version = version
        self._running: list[asyncio.Task[None]] = []
        self._partitions: dict[str, Partitions] = {}
        self._elections: dict[str, Election] = {}

    def ownership(self, service: str) -> Ownership:
        """The keys of the partitions that this replica holds. A restarted service begins without listeners."""
        partitions = self._partitions.get(service)
        if partitions is None:
            about = {"version": self._version, "host": socket.gethostname(), "pid": str(os.getpid())}
            registry = Registry(self._session, service, about)
            partitions = self._partitions[service] = Partitions(self._session, registry, service, self._gains)
            held = self._metrics.partitions.labels(service)
            held.set_function(lambda: len(partitions.held))
            self.start(registry.run, f"registry-{service}")
            self.start(partitions.run, f"partitions-{service}")
        partitions.detach()
        return partitions

    def leadership(self, service: str) -> Leadership:
        """The election of that service; this replica is a candidate from now on."""
        election = self._elections.get(service)
        if election is None:
            election = self._elections[service] = Election(self._session, service)
            self.start(election.run, f"election-{service}")
        return election

    def start(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        """Run a task for as long as the leases are needed."""
        self._running.append(self._tasks.create_task(self._supervisor.keep(name, work), name=name))

    def stop(self) -> None:
        """Cancel everything that was started."""
        for task in self._running:
            task.cancel()


@asynccontextmanager
async def by_etcd(
    settings: Settings, kube: KubeClient, health: Health, metrics: Metrics, *, kind: str, connected: Callable[[], bool]
) -> AsyncIterator[Leasing]:
    """Leasing through the platform's etcd. `kind`, `connected`: see `leasing`."""
    platform = settings.platform
    async with EtcdClient(options_of(platform.etcd)) as client:
        session = Session.begin(
            client,
            prefix=prefix_of(platform),
            replica=platform.replica_id or default_replica_id(),
            ttl=math.ceil(platform.etcd.lease_ttl),
        )
        lease, had = session.lease, False
        metrics.lease_alive.set_function(lambda: float(lease.alive()))

        def report() -> None:
            nonlocal had
            if had and not lease.alive():
                metrics.lease_losses.inc()
            had = lease.alive()
            if not lease.alive():
                health.set(COMPONENT, HealthState.FAILED, lease.trouble or "no lease in etcd yet")
            elif lease.trouble:
                health.set(COMPONENT, HealthState.DEGRADED, lease.trouble)
            else:
                health.ok(COMPONENT)

        async def reaches() -> bool:
            return connected() and await answers(kube)

        lease.on_change(report)
        health.expect(COMPONENT)
        async with asyncio.TaskGroup() as tasks:
            many = ManyReplicas(session, tasks, metrics, Supervisor(COMPONENT, health, metrics), platform.version)
            many.start(lease.run, "lease")
            many.start(Reach(session, kind, reaches).run, "reach")
            try:
                yield many
            finally:
                # The services have ended by now: no work under the lease is under way.
                many.stop()
                had = False
                await lease.close()


async def answers(kube: KubeClient) -> bool:
    """Whether the API server serves this replica, even if it forbids this path or limits the rate.

    An error of a gateway (502) or a refused token may concern only this replica: another one can do its work.
    """
    try:
        async with asyncio.timeout(PROBE_WITHIN):
            await kube.raw_get("/version")
    except (KubeError, TimeoutError) as error:
        return not isinstance(error, Unavailable | Unauthorized | TimeoutError)
    return True


def prefix_of(platform: Platform) -> str:
    """The prefix of the platform's keys in etcd."""
    return f"{platform.etcd.prefix.rstrip('/')}/{platform.cluster_name}"


def options_of(etcd: Etcd) -> EtcdOptions:
    """How the platform's etcd is reached."""
    password = etcd.password.get_secret_value()
    return etcd_options(etcd.endpoints, etcd.tls, etcd.user, etcd.password_file, password)


def etcd_options(
    endpoints: Sequence[str], tls: Tls, user: str, password_file: Path | None, password: str = ""
) -> EtcdOptions:
    """How an etcd is reached; `password` without a file."""

    def current() -> str:
        # It is rotated, so it is read at each login; an OSError then is a failure of etcd.
        return password_file.read_text().rstrip("\r\n") if password_file is not None else password

    return EtcdOptions(
        endpoints=endpoints,
        ca_file=tls.ca_file,
        cert_file=tls.cert_file,
        key_file=tls.key_file,
        user=user,
        password=current,
    )
