"""Composition root: all that the planner service is made of, on one page."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from dynamo_shared.bus.nats import NatsListener
from dynamo_shared.runtime import ServiceContext

from dynamo_planner.inputs.runtime_feed import runtime_nats_options
from dynamo_planner.metrics import PlanMetrics
from dynamo_planner.planning.controller import Plans
from dynamo_planner.profiling.rapid import RapidProfiler
from dynamo_planner.profiling.thorough import read_output
from dynamo_planner.requests.controller import Requests

NAME = "planner"
#: Planning shares its graphs with other replicas apart from requests: each has its own queue and partitions.
PLANS = "planner-plans"


class PlannerService:
    """Makes deployments of objectives, and keeps objectives by planning replicas."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        settings = context.settings
        platform = settings.platform
        metrics = PlanMetrics(context.metrics.registry)
        try:
            async with AsyncExitStack() as stack:
                profiler = await stack.enter_async_context(
                    RapidProfiler(platform.planner, platform.version, context.clock)
                )
                # Secrets are read from files.
                options = await asyncio.to_thread(
                    runtime_nats_options, platform.planner.runtime_nats, settings.infrastructure.nats_address
                )
                listener = await stack.enter_async_context(NatsListener(options)) if options is not None else None
                async with asyncio.TaskGroup() as parts:
                    parts.create_task(Requests(context, NAME, profiler, read_output).serve(), name="requests")
                    parts.create_task(Plans(context, PLANS, metrics, listener).serve(), name="plans")
        finally:
            metrics.close()
