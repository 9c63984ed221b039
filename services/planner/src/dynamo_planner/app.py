"""Composition root: all that the planner service is made of, on one page."""

from __future__ import annotations

import asyncio

from dynamo_shared.runtime import ServiceContext

NAME = "planner"


class PlannerService:
    """Makes deployments of objectives, and keeps objectives by planning replicas."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        context.health.ok(NAME)
        await asyncio.Event().wait()
