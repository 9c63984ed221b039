"""Runs services in this process. Containers run this, so it imports nothing that only people need."""

import asyncio
from collections.abc import Sequence

import structlog
from dynamo_shared.runtime import Service, Settings, running

from dynamo_ctl import services, webhooks
from dynamo_ctl.errors import CtlError, ExitCode

log = structlog.get_logger("dynamo.ctl")


async def serve(chosen: Sequence[Service], settings: Settings) -> None:
    """Run services until cancelled. Raises CtlError if the admission service is among them and the settings have no
    address for its webhooks.
    """
    if not webhooks.named(settings) and any(service.name == services.ADMISSION for service in chosen):
        raise CtlError(
            "admission: the API server needs an address to call: set server.webhook.serviceName to the Service, or "
            "platform.admission.url; to run without admission, name the services to run",
            ExitCode.USAGE,
        )
    async with running(chosen, settings) as platform:
        names = [service.name for service in chosen]
        log.info("running", services=names, health_port=platform.health_port, metrics_port=platform.metrics_port)
        try:
            await asyncio.Event().wait()
        finally:
            log.info("stopping", services=names)
