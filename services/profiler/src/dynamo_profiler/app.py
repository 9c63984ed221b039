"""Composition root: shows all parts of the profiler service on one page."""

from functools import partial

from dynamo_shared.runtime import ServiceContext

from dynamo_profiler.metrics import ProfilingMetrics
from dynamo_profiler.profiling.rapid import RapidProfiler
from dynamo_profiler.profiling.thorough import read_output
from dynamo_profiler.profiling.thorough_candidates import require_candidates
from dynamo_profiler.requests.controller import RequestController

NAME = "profiler"


class ProfilerService:
    """Turns objectives into deployments."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        platform = context.settings.platform
        with ProfilingMetrics(context.metrics.registry) as metrics:
            async with RapidProfiler(platform.planner, platform.version, metrics=metrics) as profiler:
                candidates = partial(require_candidates, settings=platform.planner.rapid)
                controller = RequestController(
                    context, NAME, profiler.run, read_output, candidates, large=profiler.large
                )
                await controller.serve()
