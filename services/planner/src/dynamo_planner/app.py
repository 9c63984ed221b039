"""Composition root: all parts of the planner service, on one page."""

from contextlib import nullcontext

from dynamo_shared.bus.nats import NatsListener
from dynamo_shared.runtime import ServiceContext

from dynamo_planner.inputs.runtime_feed import runtime_nats_options
from dynamo_planner.metrics import PlanMetrics
from dynamo_planner.planning.controller import Plans

NAME = "planner"


class PlannerService:
    """Keeps objectives by planning replicas."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        settings = context.settings
        options = runtime_nats_options(settings.platform.planner.runtime_nats, settings.infrastructure.nats_address)
        with PlanMetrics(context.metrics.registry, context.clock) as metrics:
            async with NatsListener(options) if options is not None else nullcontext() as listener:
                await Plans(context, NAME, metrics, listener).serve()
