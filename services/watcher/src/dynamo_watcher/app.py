"""Composition root: all parts of the watcher on one page."""

import asyncio
from functools import partial

from dynamo_shared.aio import while_held
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import KAI_QUEUES, NODES, RESOURCE_SLICES, Resource
from dynamo_shared.bus import BusHealth
from dynamo_shared.kube.events import EventRecorder
from dynamo_shared.leases import Leadership
from dynamo_shared.runtime import HealthState, ServiceContext, Settings
from dynamo_shared.runtime.controller import now
from dynamo_shared.runtime.facts import record

from dynamo_watcher import events
from dynamo_watcher.feed import Feed
from dynamo_watcher.follower import lookup, reflecting
from dynamo_watcher.metrics import WatcherMetrics
from dynamo_watcher.resources import WATCHED
from dynamo_watcher.scope import ScopeLease

NAME = "watcher"
FIELD_MANAGER = "dynamo-watcher"


class WatcherService:
    """Publishes the Kubernetes objects that the platform reads to STATE. One replica is active, the others stand by."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        with WatcherMetrics(context.metrics.registry) as metrics:
            await _Watcher(context, metrics).serve()


class _Watcher:
    def __init__(self, context: ServiceContext, metrics: WatcherMetrics) -> None:
        self._context = context
        self._kube = context.kube.acting_as(FIELD_MANAGER)
        self._leadership: Leadership = context.leadership(NAME)
        self._metrics = metrics
        self._troubles: dict[str, str] = {}
        self._active = False

    async def serve(self) -> None:
        """Stand by until elected, feed until the election is lost, and repeat."""
        forget = self._context.bus.on_health(lambda _: self._report())
        try:
            while True:
                self._report()
                await self._leadership.wait_elected()
                self._active = True
                self._metrics.active.set(1)
                self._report()
                await self._feed_while_elected()
                self._active = False
                self._troubles.clear()
                self._metrics.active.set(0)
                # A sum over all replicas must be right.
                self._metrics.objects.clear()
        finally:
            forget()

    async def _feed_while_elected(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            holding = [
                tasks.create_task(
                    self._context.supervisor(NAME).keep("namespace-scope", partial(self._hold, namespace))
                )
                for namespace in self._context.settings.served
            ]
            try:
                count = self._context.metrics.events(FIELD_MANAGER)
                async with EventRecorder(self._kube, FIELD_MANAGER, count=count) as recorder:
                    await while_held(self._leadership, self._feed(recorder).run())
            finally:
                for each in holding:
                    each.cancel()

    async def _hold(self, namespace: str) -> None:
        """Announce to cluster-wide platforms that this platform serves the namespace."""
        settings = self._context.settings
        scope = settings.namespace.scope
        await ScopeLease(
            self._kube,
            namespace=namespace,
            version=settings.platform.version,
            duration=scope.lease_duration,
            interval=scope.lease_renew_interval,
            now=now,
            trouble=self._trouble,
        ).hold()

    def _feed(self, recorder: EventRecorder) -> Feed:
        settings = self._context.settings

        def too_large(obj: KubeObject, message: str) -> None:
            record(recorder, obj, events.TOO_LARGE(message))

        return Feed(
            reflecting(self._kube),
            self._context.bus,
            settings.platform.cluster_name,
            [each for each in WATCHED if each.resource not in left_out(settings)],
            self._metrics,
            lookup=lookup(self._kube),
            namespaces=settings.served,
            trouble=self._trouble,
            too_large=too_large,
        )

    def _trouble(self, resource: str, message: str) -> None:
        if message:
            self._troubles[resource] = message
        else:
            self._troubles.pop(resource, None)
        self._report()

    def _report(self) -> None:
        troubles = [f"{resource}: {message}" for resource, message in sorted(self._troubles.items())]
        if self._context.bus.health is not BusHealth.CONNECTED:
            troubles.append(f"NATS: {self._context.bus.trouble}")
        if troubles:
            self._context.health.set(NAME, HealthState.DEGRADED, "; ".join(troubles))
        else:
            self._context.health.set(NAME, HealthState.OK, "active" if self._active else "standby")


def left_out(settings: Settings) -> set[Resource]:
    """Cluster-scoped resources that the settings exclude: a platform for some namespaces may not read them."""
    used = {
        NODES: settings.gpu.discovery_enabled,
        RESOURCE_SLICES: settings.gpu.discovery_enabled,
        KAI_QUEUES: settings.orchestrators.kai_scheduler.enabled is not False,
    }
    return {resource for resource, needed in used.items() if not needed}
