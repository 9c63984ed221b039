"""Ownership and leadership of this process's services: through etcd if it is configured, otherwise trivial."""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from dynamo_shared.aio import all_of, ended
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient, KubeError
from dynamo_shared.kube.config import SERVICE_ACCOUNT
from dynamo_shared.kube.errors import Unauthorized, Unavailable
from dynamo_shared.leases import AllKeys, AlwaysLeader, Leadership, Ownership
from dynamo_shared.runtime.health import Health, HealthState
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings import Settings
from dynamo_shared.runtime.settings.platform import Etcd, LeaseMode
from dynamo_shared.runtime.standby import KubeClaim
from dynamo_shared.runtime.supervision import Supervisor

if TYPE_CHECKING:
    from dynamo_shared.leases.election import Election
    from dynamo_shared.leases.partitions import Partitions
    from dynamo_shared.leases.session import Session

COMPONENT = "etcd"
STANDBY = "standby"
#: How long the API server may take to answer with its version. Seconds.
PROBE_WITHIN = 15.0
#: Namespace of the platform by default.
DEFAULT_NAMESPACE = "dynamo-system"


class Leasing:
    """Decides which keys a service works on. This class is for a single replica, which does everything."""

    def ownership(self, service: str) -> Ownership:
        """The keys that this replica of a service works on."""
        del service
        return AllKeys()

    def leadership(self, service: str) -> Leadership:
        """Whether this replica of a service is the active one."""
        del service
        return AlwaysLeader()


class ManyReplicas(Leasing):
    """Replicas share the work through etcd. A service's registration or election starts with its first call."""

    def __init__(
        self, session: Session, tasks: asyncio.TaskGroup, metrics: Metrics, supervisor: Supervisor, version: str
    ) -> None:
        from dynamo_shared.leases.gains import GainLog  # noqa: PLC0415 - see `leasing`

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
        from dynamo_shared.leases.partitions import Partitions  # noqa: PLC0415 - see `leasing`
        from dynamo_shared.leases.registry import Registry  # noqa: PLC0415

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
        from dynamo_shared.leases.election import Election  # noqa: PLC0415 - see `leasing`

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


class StandbyReplicas(Leasing):
    """One replica of each service works: the holder of its Kubernetes Lease. A service's claim starts with its first
    call.
    """

    def __init__(
        self, kube: KubeClient, settings: Settings, tasks: asyncio.TaskGroup, health: Health, metrics: Metrics
    ) -> None:
        self._kube = kube.acting_as("dynamo-standby")
        self._settings = settings.platform
        self._election = settings.leader_election
        self._tasks = tasks
        self._health = health
        self._supervisor = Supervisor(STANDBY, health, metrics)
        self._claims: dict[str, KubeClaim] = {}
        self._running: list[asyncio.Task[None]] = []

    def ownership(self, service: str) -> Ownership:
        """Owns everything or nothing. A restarted service begins without listeners."""
        claim = self._claim(service)
        claim.detach()
        return claim

    def leadership(self, service: str) -> Leadership:
        """Whether this replica holds the service's Lease."""
        return self._claim(service)

    def _claim(self, service: str) -> KubeClaim:
        claim = self._claims.get(service)
        if claim is None:
            standby = self._settings.standby
            namespace, prefix = standby.namespace, f"dynamo-{self._settings.cluster_name}"
            if self._election.enabled:
                namespace, prefix = self._election.namespace or namespace, self._election.id
            key = ObjectKey(namespace or own_namespace(), f"{prefix}-{service}")
            replica = self._settings.replica_id or default_replica_id()
            claim = self._claims[service] = KubeClaim(self._kube, key, replica, standby.duration)
            claim.on_change(partial(self._report, service, claim))
            self._running.append(self._tasks.create_task(self._supervisor.keep(service, claim.run), name=key.name))
            self._report(service, claim)
        return claim

    def _report(self, service: str, claim: KubeClaim) -> None:
        # A replica that stands by is ready: an upgrade waits for it.
        part = f"{STANDBY}: {service}"
        if claim.trouble:
            self._health.set(part, HealthState.DEGRADED, f"Lease {claim.key}: {claim.trouble}")
        elif claim.may_write():
            self._health.set(part, HealthState.OK, "active")
        else:
            self._health.set(part, HealthState.OK, f"standby; active: {claim.holder or 'no replica yet'}")

    async def close(self) -> None:
        """Release all Leases. The services have ended by now: nothing is under way."""
        await ended(*self._running)
        await all_of(claim.close() for claim in self._claims.values())


def stands_by(settings: Settings, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether Kubernetes Leases decide who works: by the settings, or in a pod, which a Deployment may duplicate."""
    platform = settings.platform
    if settings.leader_election.enabled:
        return True
    if platform.standby.mode is not LeaseMode.AUTO:
        return platform.standby.mode is LeaseMode.ALWAYS
    return platform.kubernetes.kubeconfig is None and bool(environ.get("KUBERNETES_SERVICE_HOST"))


def own_namespace() -> str:
    """The platform's namespace."""
    if name := os.environ.get("POD_NAMESPACE", ""):
        return name
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip() or DEFAULT_NAMESPACE
    except OSError:
        return DEFAULT_NAMESPACE


@asynccontextmanager
async def leasing(
    settings: Settings,
    kube: KubeClient,
    health: Health,
    metrics: Metrics,
    *,
    kind: str = "platform",
    connected: Callable[[], bool] = lambda: True,
) -> AsyncIterator[Leasing]:
    """The leasing that the settings select. At the end everything held is released, so that other replicas need not
    wait.

    `kind`: what this process works on; other replicas of the same kind take over if the API server does not answer, or
    NATS is not `connected`.
    """
    etcd = settings.platform.etcd
    if not settings.platform.shares_work:
        if not stands_by(settings):
            yield Leasing()
            return
        async with asyncio.TaskGroup() as tasks:
            standby = StandbyReplicas(kube, settings, tasks, health, metrics)
            try:
                yield standby
            finally:
                await standby.close()
        return
    # Imported here: gRPC takes 27 MiB, which a single replica does not need.
    from dynamo_shared.leases.channel import EtcdOptions  # noqa: PLC0415
    from dynamo_shared.leases.client import EtcdClient  # noqa: PLC0415
    from dynamo_shared.leases.reach import Reach  # noqa: PLC0415
    from dynamo_shared.leases.session import Session  # noqa: PLC0415

    options = EtcdOptions(
        endpoints=etcd.endpoints,
        ca_file=etcd.tls.ca_file,
        cert_file=etcd.tls.cert_file,
        key_file=etcd.tls.key_file,
        user=etcd.user,
        password=partial(etcd_password, etcd),
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
                health.set(COMPONENT, HealthState.FAILED, lease.trouble or "no lease in etcd yet")
            elif lease.trouble:
                health.set(COMPONENT, HealthState.DEGRADED, lease.trouble)
            else:
                health.ok(COMPONENT)

        lease.on_change(report)
        health.expect(COMPONENT)
        async with asyncio.TaskGroup() as tasks:
            many = ManyReplicas(
                session, tasks, metrics, Supervisor(COMPONENT, health, metrics), settings.platform.version
            )
            many.start(lease.run, "lease")

            async def reaches() -> bool:
                return connected() and await answers(kube)

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


def default_replica_id() -> str:
    """The pod's or the host's name, and the process id: a restarted container is the same replica."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}-{os.getpid()}"


def etcd_password(etcd: Etcd) -> str:
    """The password of etcd's user. It is rotated, so it is read at each login; an OSError then is a failure of etcd."""
    file = etcd.password_file
    return file.read_text().rstrip("\r\n") if file is not None else etcd.password.get_secret_value()
