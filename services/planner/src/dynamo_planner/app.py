"""Composition root: all that the planner service is made of, on one page."""

from __future__ import annotations

from dynamo_shared.runtime import ServiceContext

from dynamo_planner.profiling.rapid import RapidProfiler
from dynamo_planner.profiling.thorough import read_output
from dynamo_planner.requests.controller import Requests

NAME = "planner"


class PlannerService:
    """Makes deployments of objectives, and keeps objectives by planning replicas."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        platform = context.settings.platform
        async with RapidProfiler(platform.planner, platform.version, context.clock) as profiler:
            await Requests(context, NAME, profiler, read_output).serve()
