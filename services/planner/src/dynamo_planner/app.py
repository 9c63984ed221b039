"""Composition root: all that the planner service is made of, on one page."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any

from dynamo_shared.bus.nats import NatsListener
from dynamo_shared.runtime import ServiceContext

from dynamo_planner.inputs.runtime_feed import runtime_nats_options
from dynamo_planner.metrics import PlanMetrics, ProfilingMetrics
from dynamo_planner.planning.opt_in import config_map_of
from dynamo_planner.profiling.enumerating import thorough_candidates
from dynamo_planner.profiling.rapid import RapidProfiler
from dynamo_planner.profiling.thorough import read_output
from dynamo_planner.requests.controller import RequestController

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
        profiling = ProfilingMetrics(context.metrics.registry)
        try:
            async with AsyncExitStack() as stack:
                profiler = await stack.enter_async_context(
                    RapidProfiler(platform.planner, platform.version, context.clock, metrics=profiling)
                )
                # Secrets are read from files.
                options = await asyncio.to_thread(
                    runtime_nats_options, platform.planner.runtime_nats, settings.infrastructure.nats_address
                )
                listener = await stack.enter_async_context(NatsListener(options)) if options is not None else None
                asked = asyncio.Event()

                def saw(graph: dict[str, Any]) -> None:
                    if config_map_of(graph):
                        asked.set()

                async def serve_requests() -> None:
                    await RequestController(
                        context,
                        NAME,
                        profiler,
                        read_output,
                        saw=saw,
                        candidates=lambda request: thorough_candidates(request, platform.planner.rapid),
                    ).serve()

                async with asyncio.TaskGroup() as parts:
                    keep = context.supervisor(NAME).keep
                    parts.create_task(keep("requests", serve_requests, essential=True))
                    parts.create_task(keep("plans", lambda: _plan(context, metrics, listener, asked)))
        finally:
            metrics.close()
            profiling.close()


async def _plan(
    context: ServiceContext, metrics: PlanMetrics, listener: NatsListener | None, asked: asyncio.Event
) -> None:
    """Plans graphs as soon as the first one asks for it: until then numerical libraries are not loaded."""
    await asked.wait()
    planning = await asyncio.to_thread(import_module, "dynamo_planner.planning.controller")
    await planning.Plans(context, PLANS, metrics, listener).serve()
