"""The interface of a service, and what it gets to work with."""

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
    """One service. `run` ends only when cancelled or with an error, after which it is started again."""

    @property
    def name(self) -> str:
        """The name for `dynamoctl run`."""
        ...

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        ...


def needs_api_server_alone(service: Service) -> bool:
    """Whether a service works without NATS and etcd, declared by an attribute `api_server_alone`.

    A process with only such services opens no connection to either, so their failures do not affect it.
    """
    return bool(getattr(service, "api_server_alone", False))


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """Connections and tools of one process, shared by its services."""

    settings: Settings
    kube: KubeClient
    bus: Bus
    health: Health
    metrics: Metrics
    #: The keys of this replica, by the service's name.
    ownership: Callable[[str], Ownership]
    #: Whether this replica is active, by the service's name.
    leadership: Callable[[str], Leadership]
    clock: Callable[[], float] = time.monotonic
    #: Spreads work that would otherwise come at once.
    randomness: Randomness = random.random

    def supervisor(self, service: str) -> Supervisor:
        """A supervisor for the parts of a service."""
        return Supervisor(service, self.health, self.metrics)

    def queue(
        self, name: str, lane: Callable[[Any], str], urgent: Callable[[Any], bool] = lambda _: False
    ) -> WorkQueue[Any]:
        """A work queue; `name` is for its metrics. Lanes (namespaces) take turns, and `urgent` keys precede others."""
        metrics = self.metrics.queue(name)
        return WorkQueue(metrics=metrics, clock=self.clock, jitter=self.randomness, urgent=urgent, lane=lane)
