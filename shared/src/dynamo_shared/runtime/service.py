"""What a service is, and what it is given to work with."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from dynamo_shared.aio import Randomness
from dynamo_shared.bus import Bus
from dynamo_shared.kube import KubeClient
from dynamo_shared.leases import Leadership, Ownership
from dynamo_shared.runtime.health import Health
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings import Settings
from dynamo_shared.runtime.supervision import Supervisor
from dynamo_shared.runtime.workqueue import WorkQueue


@runtime_checkable
class Service(Protocol):
    """One service. `run` ends only by cancellation or with an error, after which it is started again."""

    @property
    def name(self) -> str:
        """The name that `dynamoctl run` knows it by."""
        ...

    async def run(self, context: ServiceContext) -> None:
        """Serve."""
        ...


def needs_api_server_alone(service: Service) -> bool:
    """Whether a service works without NATS and etcd; it says so by an attribute `api_server_alone`.

    A process of only such services opens no connection to either, so that it cannot miss them.
    """
    return bool(getattr(service, "api_server_alone", False))


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """Connections and tools of one process, shared by the services that run in it."""

    settings: Settings
    kube: KubeClient
    bus: Bus
    health: Health
    metrics: Metrics
    #: Which keys this replica works on, by the service's name.
    ownership: Callable[[str], Ownership]
    #: Whether this replica is the active one, by the service's name.
    leadership: Callable[[str], Leadership]
    clock: Callable[[], float] = time.monotonic
    #: Spreads what would come at once.
    randomness: Randomness = random.random

    def supervisor(self, service: str) -> Supervisor:
        """Supervises the parts of a service."""
        return Supervisor(service, self.health, self.metrics)

    def queue(
        self, name: str, lane: Callable[[Any], str], urgent: Callable[[Any], bool] = lambda _: False
    ) -> WorkQueue[Any]:
        """A work queue under a name for its metrics. Lanes (namespaces) are taken in turn, `urgent` keys before others."""
        metrics = self.metrics.queue(name)
        return WorkQueue(metrics=metrics, clock=self.clock, jitter=self.randomness, urgent=urgent, lane=lane)
