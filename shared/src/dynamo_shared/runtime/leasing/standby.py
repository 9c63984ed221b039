"""Leasing without etcd: one replica of each service works, the others stand by."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from dynamo_shared.aio import all_of, ended
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.config import pod_namespace
from dynamo_shared.leases import Leadership, Ownership
from dynamo_shared.runtime.health import Health, HealthState
from dynamo_shared.runtime.leasing.base import Leasing, default_replica_id
from dynamo_shared.runtime.leasing.claim import KubeClaim
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings import Settings
from dynamo_shared.runtime.settings.platform import LeaseMode
from dynamo_shared.runtime.supervision import Supervisor

_STANDBY = "standby"
#: Namespace of the platform by default.
_DEFAULT_NAMESPACE = "dynamo-system"


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
        self._supervisor = Supervisor(_STANDBY, health, metrics)
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
            key = ObjectKey(namespace or pod_namespace(os.environ) or _DEFAULT_NAMESPACE, f"{prefix}-{service}")
            replica = self._settings.replica_id or default_replica_id()
            claim = self._claims[service] = KubeClaim(self._kube, key, replica, standby.duration)
            claim.on_change(partial(self._report, service, claim))
            self._running.append(self._tasks.create_task(self._supervisor.keep(service, claim.run), name=key.name))
            self._report(service, claim)
        return claim

    def _report(self, service: str, claim: KubeClaim) -> None:
        # A replica that stands by is ready: an upgrade waits for it.
        part = f"{_STANDBY}: {service}"
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


@asynccontextmanager
async def by_kubernetes(
    settings: Settings, kube: KubeClient, health: Health, metrics: Metrics
) -> AsyncIterator[Leasing]:
    """Leasing by Kubernetes Leases."""
    async with asyncio.TaskGroup() as tasks:
        standby = StandbyReplicas(kube, settings, tasks, health, metrics)
        try:
            yield standby
        finally:
            await standby.close()
