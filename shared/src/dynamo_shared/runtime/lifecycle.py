"""The life of a process: connections, services in one event loop, endpoints, and an orderly shutdown.

A failed service is started again after a growing pause; other services are not affected. If NATS, etcd or the API
server is unavailable at the start, the process waits for it and reports that at /readyz, because in a cluster
everything starts at once.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog
from prometheus_client import REGISTRY

from dynamo_shared.aio import supervised
from dynamo_shared.bus import Bus, BusHealth, NatsBus, NatsOptions
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import connections, endpoints
from dynamo_shared.runtime.health import Health, HealthState
from dynamo_shared.runtime.leasing import Leasing, leasing
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.process import allow_open_files, rare_collections
from dynamo_shared.runtime.scrapers import Scrapers
from dynamo_shared.runtime.service import Service, ServiceContext, needs_api_server_alone
from dynamo_shared.runtime.settings import Settings
from dynamo_shared.runtime.settings.operator import MetricsServer
from dynamo_shared.runtime.supervision import kind_of
from dynamo_shared.runtime.tls import self_signed_tls
from dynamo_shared.runtime.tracing import tracing

#: Kubernetes kills a pod after 30 s (the reference's grace period); an orderly shutdown must be over before. Seconds.
SHUTDOWN_WITHIN = 25.0
#: If a service ran this long, its next failure counts as a first one. Seconds.
WELL_AFTER = 60.0

log = structlog.get_logger("dynamo.runtime")


@dataclass(frozen=True, slots=True)
class Running:
    """A platform, or a part of it, that runs in this process."""

    context: ServiceContext
    health_port: int
    #: 0 if no metrics are served.
    metrics_port: int

    async def ready(self, timeout: float = 60.0) -> None:
        """Return when everything works; after `timeout` seconds TimeoutError, which names the failed parts."""
        try:
            async with asyncio.timeout(timeout):
                await self.context.health.wait_ready()
        except TimeoutError:
            raise TimeoutError(f"not ready after {timeout:g} s: {self.context.health.not_ready}") from None


@asynccontextmanager
async def running(services: Sequence[Service], settings: Settings) -> AsyncIterator[Running]:
    """Run services while the block runs.

    Raises errors that prevent a start: InvalidSettings, ConfigError (kubeconfig), OSError (a port is taken, a
    certificate cannot be read).
    """
    name = services[0].name if len(services) == 1 else "platform"
    allow_open_files()
    for setting in settings.ignored:
        log.warning("setting ignored", setting=setting)
    for older in settings.older_names:
        log.warning("deprecated setting", setting=older)
    health, metrics = Health(), Metrics()
    # Before the first probe: a process that has not connected yet is not ready.
    for service in services:
        health.expect(service.name)
    async with AsyncExitStack() as stack:
        stack.enter_context(rare_collections())
        await stack.enter_async_context(tracing(name, settings.platform))
        probe, scrape = settings.server.health_probe, settings.server.metrics
        health_port = await stack.enter_async_context(
            endpoints.serving(endpoints.health_app(health), probe.bind_address, probe.port)
        )
        kube = await stack.enter_async_context(connections.kubernetes(settings, metrics))
        metrics_port = 0
        if scrape.enabled:
            metrics_port = await stack.enter_async_context(_metrics(scrape, metrics, kube))
        if all(needs_api_server_alone(service) for service in services):
            # Never connected: none of these services uses it.
            bus: Bus = NatsBus(NatsOptions())
            leases = Leasing()
        else:
            bus = await stack.enter_async_context(connections.nats(settings, name, health))
            held = leasing(
                settings, kube, health, metrics, kind=name, connected=lambda: bus.health is BusHealth.CONNECTED
            )
            leases = await stack.enter_async_context(held)
        context = ServiceContext(settings, kube, bus, health, metrics, leases.ownership, leases.leadership)
        tasks = [asyncio.create_task(_keep(service, context), name=service.name) for service in services]
        try:
            yield Running(context, health_port, metrics_port)
        finally:
            await _end(tasks)


def _metrics(scrape: MetricsServer, metrics: Metrics, kube: KubeClient) -> AbstractAsyncContextManager[int]:
    """Serve /metrics: with TLS for callers that the API server authorizes, or plain for all. Yields the port."""
    if not scrape.secure:
        app = endpoints.metrics_app(metrics.registry, REGISTRY)
        return endpoints.serving(app, scrape.bind_address, scrape.port)
    tls = endpoints.server_tls(scrape.cert_dir) if scrape.cert_dir is not None else self_signed_tls()
    scrapers = Scrapers(kube.acting_as("dynamo-metrics"))
    app = endpoints.metrics_app(metrics.registry, REGISTRY, scrapers=scrapers)
    return endpoints.serving(app, scrape.bind_address, scrape.port, tls)


async def _keep(service: Service, context: ServiceContext) -> None:
    """Run a service until cancelled; restart it whenever it fails. It reports its own health once it works again."""
    restarts = context.metrics.service_restarts.labels(service.name)

    def failed(error: Exception) -> None:
        log.error("service failed", service=service.name, exc_info=error)
        restarts.inc()
        # The text of an exception group does not describe its errors.
        message = f"{kind_of(error)}; the log has the details" if isinstance(error, ExceptionGroup) else str(error)
        context.health.set(service.name, HealthState.FAILED, message or kind_of(error))

    with structlog.contextvars.bound_contextvars(service=service.name):
        await supervised(lambda: service.run(context), failed, well_after=WELL_AFTER)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    _, late = await asyncio.wait(tasks, timeout=SHUTDOWN_WITHIN)
    for task in late:
        log.error("service did not end in time", service=task.get_name(), seconds=SHUTDOWN_WITHIN)
